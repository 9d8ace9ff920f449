package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/dashboards"
	"github.com/windowstat/windowstat/exporter"
)

// The tests read files of the main module from its embedded file systems. go test caches results and does not notice
// changes of files outside the tested module.
func TestCommittedFilesAreWhatTheProgramWrites(t *testing.T) {
	for _, s := range sets {
		for name, build := range boards {
			want, err := s.render(build)
			if err != nil {
				t.Fatal(err)
			}
			path := path.Join(s.dir, name+".json")
			got, err := fs.ReadFile(dashboards.FS(), path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what the program writes; run: make dashboards", path)
			}
		}
	}
}

// A shown dashboard holds the fields of a dashboard that the tests check.
type shown struct {
	UID, Title string
	Panels     []shownPanel
	Templating struct {
		List []struct{ Name, Definition, Regex string }
	}
	Annotations struct {
		List []struct{ Expr string }
	}
}

type shownPanel struct {
	ID                       int
	Type, Title, Description string
	Interval                 string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	Panels                   []shownPanel // of a collapsed row
	FieldConfig              struct {
		Defaults struct {
			Unit, NoValue string
			Thresholds    *struct{}
		}
		Overrides []any
	}
	Targets []shownTarget
}

type shownTarget struct {
	RefID, Expr, Interval string
	Instant, Exemplar     bool
	Datasource            struct{ UID string }
}

// panels returns all panels of a dashboard, including rows and the panels of collapsed rows.
func panels(d shown) (all []shownPanel) {
	for _, p := range d.Panels {
		all = append(append(all, p), p.Panels...)
	}
	return all
}

func read(t *testing.T) map[string]shown {
	t.Helper()
	all := map[string]shown{}
	for name := range boards {
		text, err := fs.ReadFile(dashboards.FS(), name+".json")
		if err != nil {
			t.Fatal(err)
		}
		var d shown
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		all[name] = d
	}
	return all
}

func TestIDsAreThere(t *testing.T) {
	for name, d := range read(t) {
		if d.UID != "windowstat-"+name {
			t.Errorf("%s: uid is %q", name, d.UID)
		}
		ids, titles := map[int]string{}, map[string]bool{}
		for _, p := range panels(d) {
			if before, ok := ids[p.ID]; ok || p.ID == 0 {
				t.Errorf("%s: %q and %q have the id %d", name, before, p.Title, p.ID)
			}
			if titles[p.Title] {
				t.Errorf("%s: two panels are called %q", name, p.Title)
			}
			ids[p.ID], titles[p.Title] = p.Title, true
		}
	}
}

// TestIDsStay compares the ids of panels with the list of all ids ever assigned, because links refer to a panel by its
// id. A removed panel keeps its line, so no other panel gets its id.
func TestIDsStay(t *testing.T) {
	text, err := os.ReadFile("testdata/ids.txt")
	if err != nil {
		t.Fatal(err)
	}
	given, before := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		panel := fields[0] + " " + fields[1]
		if _, ok := given[panel]; ok {
			t.Errorf("%s is there twice", panel)
		}
		given[panel], before = fields[2], panel
	}
	for name, d := range read(t) {
		for _, p := range panels(d) {
			if panel := fmt.Sprintf("%s %d", name, p.ID); given[panel] != p.Title && p.Type != "row" {
				t.Errorf("%s is %q, and was %q; a new panel needs a new id, and a line in testdata/ids.txt after %s",
					panel, p.Title, given[panel], before)
			}
		}
	}
}

// TestSelectorsFollowTheVariables checks that every selector contains the selected values of the variables.
func TestSelectorsFollowTheVariables(t *testing.T) {
	for name, d := range read(t) {
		for _, v := range []string{"datasource", "cluster", "namespace", "job", "instance"} {
			hasName := func(l struct{ Name, Definition, Regex string }) bool { return l.Name == v }
			if !slices.ContainsFunc(d.Templating.List, hasName) {
				t.Errorf("%s has no variable %s", name, v)
			}
		}
		d.Templating.List = nil // each variable depends on the previous ones
		expressions(d, func(where, expr string) {
			for _, s := range nodes[*parser.VectorSelector](t, name+", "+where, plainExpr(expr)) {
				if s.String() == evaluated {
					continue // the metric has no target
				}
				for _, label := range []string{"cluster", "namespace", "job", "instance"} {
					// Values of all targets are joined with selected ones, see view.everywhere and view.unselected.
					joined := []string{"Hangs", "p99", "p99 by resource", "Response time", "Resources"}
					if label == "instance" && slices.Contains(joined, where) &&
						strings.Contains(expr, instance) {
						continue
					}
					if !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == label }) {
						t.Errorf("%s, %s: %s does not select by %s", name, where, s, label)
					}
				}
			}
		})
	}
}

func TestPanelsHaveWhatTheyNeed(t *testing.T) {
	for name, d := range read(t) {
		for _, p := range panels(d) {
			if p.Type == "row" {
				continue
			}
			if p.Description == "" || p.FieldConfig.Defaults.Unit == "" ||
				p.FieldConfig.Defaults.Thresholds == nil && p.Type != "heatmap" {
				t.Errorf("%s, %q: description, unit or thresholds are missing", name, p.Title)
			}
			if p.FieldConfig.Defaults.NoValue == "" {
				t.Errorf("%s, %q: no text for a panel without data", name, p.Title)
			}
			if p.FieldConfig.Overrides == nil {
				t.Errorf("%s, %q: overrides are null", name, p.Title)
			}
			if p.GridPos.X+p.GridPos.W > width || p.GridPos.W == 0 || p.GridPos.H == 0 {
				t.Errorf("%s, %q: it does not fit: %v", name, p.Title, p.GridPos)
			}
			if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s, %q: data source %q, %d queries", name, p.Title, p.Datasource.UID, len(p.Targets))
			}
			for _, q := range p.Targets {
				checkTarget(t, name, p, q)
			}
		}
	}
}

func checkTarget(t *testing.T, name string, p shownPanel, q shownTarget) {
	t.Helper()
	if q.Datasource.UID != "${datasource}" {
		t.Errorf("%s, %q: data source %q", name, p.Title, q.Datasource.UID)
	}
	for _, c := range nodes[*parser.Call](t, name+", "+p.Title, plainExpr(q.Expr)) {
		if c.Func.Name != "rate" && c.Func.Name != "increase" {
			continue
		}
		m := c.Args[0].(*parser.MatrixSelector)
		if strings.HasPrefix(m.VectorSelector.(*parser.VectorSelector).Name, "windowstat_persecond_") {
			t.Errorf("%s, %q: %s of single seconds", name, p.Title, c.Func.Name)
		}
		if m.Range != rateInterval && m.Range != shownRange {
			t.Errorf("%s, %q: %s over %v", name, p.Title, c.Func.Name, m.Range)
		}
	}
}

// Replacements for Grafana's time variables, with values that no query contains otherwise.
const (
	rateInterval = 61 * time.Second
	shownRange   = 907 * time.Second
)

// plainExpr replaces Grafana's variables in an expression with values, so that a PromQL parser accepts the expression.
func plainExpr(expr string) string {
	return strings.NewReplacer(
		"$__rate_interval", rateInterval.String(), "$__interval_ms", "15000", "${__interval}", "15s",
		"$__interval", "15s", "$__range", shownRange.String(),
		"${cluster:regex}", ".*", "${namespace:regex}", ".*", "${job:regex}", ".+", "${instance:regex}", ".+",
		"${resources:regex}", ".*", "${resource:regex}", "checkout", totalPrefix, "", coarse, "",
	).Replace(expr)
}

// expressions calls f for every expression of a dashboard.
func expressions(d shown, f func(where, expr string)) {
	for _, p := range panels(d) {
		for _, q := range p.Targets {
			f(p.Title, q.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		if a.Expr != "" {
			f("annotations", a.Expr)
		}
	}
	for _, v := range d.Templating.List {
		if query, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			f("variable "+v.Name, query[:strings.LastIndex(query, ",")])
		}
	}
}

// others lists the selectable metrics outside the catalogue: of Sentinel's metric log, the rules and client_golang.
var others = []string{
	"windowstat_persecond_rt_avg_seconds", "ALERTS", "process_start_time_seconds", "process_cpu_seconds_total",
	"go_goroutines", "go_gc_duration_seconds_sum",
}

// excused maps metrics of the catalogue that no dashboard shows to the reason.
var excused = map[string]string{
	"windowstat_persecond_run":      "a number to be compared for equality, by windowstat verify",
	"windowstat_replay_lines_total": "only a replay of an access log has it, which is no service",
}

// catalogue lists the names of all metrics.
func catalogue(t *testing.T) (names []string) {
	t.Helper()
	for _, m := range described(t) {
		names = append(names, "windowstat_"+m.Name)
	}
	return append(names, "windowstat_replay_lines_total")
}

// selectable lists the metric names that selectors may contain.
func selectable(t *testing.T) []string {
	t.Helper()
	names := append(append(catalogue(t), others...), evaluated)
	for _, m := range exporter.Catalogue() {
		if m.Type == "histogram" || m.Type == "gaugehistogram" {
			names = append(names, "windowstat_"+m.Name+"_bucket")
		}
	}
	return names
}

func TestMetricsAreThoseOfTheCatalogue(t *testing.T) {
	known := selectable(t)
	used := map[string]bool{}
	for name, d := range read(t) {
		expressions(d, func(where, expr string) {
			for _, m := range metrics(t, name+", "+where, plainExpr(expr), known) {
				used[strings.TrimSuffix(m, "_bucket")] = true
			}
		})
	}
	for _, m := range catalogue(t) {
		// A metric of resources on a dashboard covers the metric of the inbound total.
		ofResources := strings.Replace(m, "inbound_", "", 1)
		if _, ok := excused[m]; !used[m] && !ok && !(ofResources != m && used[ofResources]) {
			t.Errorf("%s is in no dashboard, and not excused", m)
		} else if used[m] && ok {
			t.Errorf("%s is in a dashboard, but excused", m)
		}
	}
}

// Optional metrics have no series without a scraper or a push, and a sum with an absent part is empty.
func TestSumsHaveAllTheirParts(t *testing.T) {
	known, optional := selectable(t), map[string]bool{}
	for _, m := range described(t) {
		optional[exporter.Namespace+"_"+m.Name] = !m.Seconds
	}
	// A Collector alone has its own metrics, and most of each resource.
	for _, m := range (*collector.Collector)(nil).Metrics() {
		optional[exporter.Namespace+"_"+m.Name] = false
	}
	for _, m := range []string{
		"pass_total", "block_total", "complete_total", "exception_total", "occupied_pass_total", "rt_seconds",
		"in_flight", "pass_qps", "block_qps", "complete_qps", "exception_qps", "pass_qps_peak",
	} {
		optional[exporter.Namespace+"_"+m] = false
	}
	for name, d := range read(t) {
		expressions(d, func(where, expr string) {
			for _, sum := range nodes[*parser.BinaryExpr](t, name+", "+where, plainExpr(expr)) {
				for _, part := range []parser.Expr{sum.LHS, sum.RHS} {
					for paren, ok := part.(*parser.ParenExpr); ok; paren, ok = part.(*parser.ParenExpr) {
						part = paren.Expr
					}
					if _, ok := part.(*parser.AggregateExpr); !ok || sum.Op != parser.ADD {
						continue
					}
					for _, m := range metrics(t, where, part.String(), known) {
						if optional[m] {
							t.Errorf("%s, %s: %s may not be there, and then the sum is not", name, where, m)
						}
					}
				}
			}
		})
	}
}

// metrics returns the metrics that an expression selects. The expression must parse, and every selector must match a
// metric.
func metrics(t *testing.T, where, expr string, known []string) (used []string) {
	t.Helper()
	for _, s := range nodes[*parser.VectorSelector](t, where, expr) {
		found := selected(s, known)
		if len(found) == 0 {
			t.Errorf("%s: there is no %s", where, s)
		}
		used = append(used, found...)
	}
	return used
}

// nodes returns all nodes of a type in an expression. The expression must parse.
func nodes[T parser.Node](t *testing.T, where, expr string) (list []T) {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v\n%s", where, err, expr)
		return nil
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if x, ok := n.(T); ok {
			list = append(list, x)
		}
		return nil
	})
	return list
}

// selected returns the metrics whose names match a selector.
func selected(s *parser.VectorSelector, known []string) (found []string) {
	for _, m := range s.LabelMatchers {
		if m.Name == "__name__" {
			for _, k := range known {
				if m.Matches(k) {
					found = append(found, k)
				}
			}
		}
	}
	return found
}
