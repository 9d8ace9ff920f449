package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/node"
)

// A load describes the calls of a resource in each second: all response times, with a known p99.
type load struct {
	resource string
	rts      func(second int64) []time.Duration
	p99      time.Duration
}

// always is a load of a hundred calls a second; some are slow.
func always(rt time.Duration, slow int, slower time.Duration) func(int64) []time.Duration {
	rts := slices.Concat(slices.Repeat([]time.Duration{rt}, 100-slow), slices.Repeat([]time.Duration{slower}, slow))
	return func(int64) []time.Duration { return rts }
}

// loads have response times from 1 µs to 60 s. One load is spread. Another has one slow call in 25 seconds among ten
// quick calls a second.
var loads = []load{
	{"1us", always(time.Microsecond, 0, 0), time.Microsecond},
	{"20us", always(20*time.Microsecond, 0, 0), 20 * time.Microsecond},
	{"700us", always(700*time.Microsecond, 0, 0), 700 * time.Microsecond},
	{"3ms", always(3*time.Millisecond, 0, 0), 3 * time.Millisecond},
	{"20ms and 600ms", always(20*time.Millisecond, 2, 600*time.Millisecond), 600 * time.Millisecond},
	{"600ms to 718ms", func(int64) (rts []time.Duration) {
		for i := range 100 {
			rts = append(rts, 600*time.Millisecond+time.Duration(i)*118*time.Millisecond/99)
		}
		return rts
	}, 716808 * time.Microsecond},
	{"1us to 60s", func(int64) (rts []time.Duration) {
		for i := range 100 {
			rts = append(rts, time.Duration(1e3*math.Pow(6e7, float64(i)/99)))
		}
		return rts
	}, 50055 * time.Millisecond},
	{"7s", always(7*time.Second, 0, 0), 7 * time.Second},
	{"60s", always(time.Minute, 0, 0), time.Minute},
	{"2ms, seldom 30s", func(second int64) []time.Duration {
		rts := slices.Repeat([]time.Duration{2 * time.Millisecond}, 10)
		if second%25 == 0 {
			rts = append(rts, 30*time.Second)
		}
		return rts
	}, 2 * time.Millisecond},
}

// shippedSeconds is the duration of the loads. It covers several scrapes, one every five seconds.
const shippedSeconds = 60

// TestShipped runs the servers with the shipped configurations, and sends every shipped expression to each server.
// Where native histograms or vmrange are stored, a p99 on the dashboard must be in the bucket of the true p99.
// Otherwise the true p99 must be between the bounds on the dashboard. The p99 must never be outside the range of the
// fastest to the slowest call.
func TestShipped(t *testing.T) {
	t.Parallel()
	p := newPaced(t, time.Now(), nil, collector.Options{})
	metrics, err := prom.Handler(p.stats, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(metricsPath, metrics)
	mux.Handle(secondsPath, page)
	l := listen(t, "127.0.0.1:0")
	serve(t, mux, l, page.ConnState)

	configured := func(name string, program program, file string) *server {
		return startConfigured(t, name, program, shippedConfig(t, name, file, l.Addr().String()))
	}
	servers := []shippedServer{
		{configured("prometheus-3-native", prometheus3, "prometheus.yaml"), true},
		{configured("prometheus-3-classic", prometheus3, "prometheus-2.yaml"), false},
		{configured("prometheus-2", prometheus2, "prometheus-2.yaml"), false},
		{configured("victoria", victoria, "victoriametrics.yaml"), true},
	}
	begin := time.Now().Unix() // after the start of the servers, whose scrapes of totals have their own times
	p.second = begin
	p.clock.set(middle(begin))
	p.live(func() bool {
		for _, x := range loads {
			for _, rt := range x.rts(p.second) {
				p.stats.Record(x.resource, collector.Completed{RT: rt})
			}
			p.stats.Record("inbound", collector.Completed{RT: 600 * time.Millisecond}, collector.Inbound())
		}
		for range hanging {
			if p.second < begin+shippedSeconds/2 {
				p.stats.Record("hangs", collector.Completed{RT: time.Millisecond})
			} else if p.second == begin+shippedSeconds/2 {
				if _, _, err := p.stats.Enter(t.Context(), "hangs"); err != nil {
					t.Error(err)
				}
			}
		}
		return p.second < begin+shippedSeconds
	})
	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		await(t, s.server, "windowstat_persecond_pass", p.second, deadline)
	}
	shown := map[string][]string{} // by expression: the servers with results
	for _, s := range servers {
		s.show(t)
		s.checkP99(t, p)
		s.checkSlow(t, p.second)
		s.checkHangs(t, p.second-1)
		for where, exprs := range shippedExpressions(t) {
			for _, expr := range exprs {
				if len(s.queryAt(t, s.withHidden(t, expr), float64(p.second-1))) > 0 &&
					!slices.Contains(shown[where], s.name) {
					shown[where] = append(shown[where], s.name)
				}
			}
		}
	}
	for where, names := range shown {
		// The results of rules and alerts depend on the time of the last evaluation.
		if len(names) != len(servers) && where != "overview, Alerts" && !strings.Contains(where, ".yaml, ") {
			t.Errorf("%s has something to show on %v alone", where, names)
		}
	}
}

// shippedConfig returns a configuration of dashboards/compose for a target, with scrapes every five seconds and a
// separate cursor for the server.
func shippedConfig(t *testing.T, name, file, target string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../dashboards/compose", file))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../dashboards/rules")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("demo:9719", target, "scrape_interval: 15s", "scrape_interval: 5s",
		"/etc/prometheus/rules", rules,
		"cursor: [prometheus]", "cursor: ["+name+"]").Replace(string(text))
}

type shippedServer struct {
	*server
	fine bool // the server stores native histograms or vmrange
}

// byResource returns the result of the expression of a column in the table of resources.
func (s shippedServer) byResource(t *testing.T, column int, at int64) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, x := range s.queryAt(t, s.withHidden(t, shippedExpressions(t)["overview, Resources"][column]), float64(at)) {
		values[x.Metric["resource"]] = x.Value.value
	}
	return values
}

func (s shippedServer) checkP99(t *testing.T, p *paced) {
	t.Helper()
	const within, longest, bound, ranges = 5, 6, 8, 9 // columns
	p99, atMost := s.byResource(t, within, p.second), s.byResource(t, bound, p.second)
	slowest := s.byResource(t, longest, p.second)
	for resource, value := range s.byResource(t, ranges, p.second) {
		if _, ok := p99[resource]; ok {
			t.Errorf("%s: the p99 of %s is there twice", s.name, resource)
		}
		p99[resource] = value
	}
	seconds := map[string]float64{}
	for _, x := range s.queryAt(t, "max by (resource) (max_over_time(windowstat_persecond_rt_p99_seconds[1m]))",
		float64(p.second)) {
		seconds[x.Metric["resource"]] = x.Value.value
	}
	for _, x := range loads {
		var h node.Histogram
		p.stats.Resource(x.resource).Snapshot(&h)
		truth := x.p99.Seconds()
		line := fmt.Sprintf("%-20s | %-16s | truth %-9.7g | engine %-9.7g | ", s.name, x.resource,
			truth, h.Quantile(0.99).Seconds())
		got, ok := p99[x.resource]
		if s.fine {
			t.Logf("%sscreen %.7g", line, got)
			_, bounded := atMost[x.resource]
			upper := math.Exp2(float64(bucketOf(truth)) / 8)
			const rounded = 1.001 // as VictoriaMetrics' bounds are
			if !ok || bounded || got > upper*rounded || got < upper*math.Exp2(-1./8)/rounded ||
				got > slowest[x.resource] {
				t.Errorf("%s: the p99 of %s is %v, not %v (slowest %v, bound %t)", s.name, x.resource, got, truth,
					slowest[x.resource], bounded)
			}
			continue
		}
		low := s.boundOf(t, "at least", x.resource, p.second)
		high := s.boundOf(t, "at most", x.resource, p.second)
		t.Logf("%sscreen %.7g to %.7g | highest p99 of a second %.7g", line, low, high, seconds[x.resource])
		if ok || !(low <= truth*1.0001 && truth <= high*1.0001) || high > slowest[x.resource] ||
			atMost[x.resource] != high {
			t.Errorf("%s: the p99 of %s is between %v and %v (in the table %v), slowest %v; it is %v", s.name,
				x.resource, low, high, atMost[x.resource], slowest[x.resource], truth)
		}
	}
}

// checkSlow checks the share of calls that took longer than 500 ms, as the rules compute it. 500 ms is a bound of both
// kinds of histogram.
func (s shippedServer) checkSlow(t *testing.T, at int64) {
	t.Helper()
	exprs := shippedExpressions(t)
	of := func(expr string) map[string]float64 {
		values := map[string]float64{}
		for _, x := range s.queryAt(t, expr, float64(at)) {
			values[x.Metric["resource"]] = x.Value.value
		}
		return values
	}
	const threshold = 1 // the threshold of the rules of this name, 500 ms
	slow, all := of(exprs["recording.yaml, job_resource_threshold:windowstat_rt_slow:rate5m"][threshold]),
		of(exprs["recording.yaml, job_resource:windowstat_complete:rate5m"][0])
	for resource, want := range map[string]float64{"3ms": 0, "20ms and 600ms": 0.02, "600ms to 718ms": 1} {
		if got := slow[resource] / all[resource]; math.Abs(got-want) > 0.001 {
			t.Errorf("%s: %v of the calls of %s took longer than 500 ms, not %v", s.name, got, resource, want)
		}
	}
}

// hanging is the number of calls of the resource "hangs" that begin after half of the time and do not end. As many
// calls end in each second before.
const hanging = 7

// checkHangs checks the table of Overview: one resource hangs, and its oldest call is nearly as old as half of the
// time.
func (s shippedServer) checkHangs(t *testing.T, at int64) {
	t.Helper()
	// Scraped up to 5 s ago.
	for i, between := range [][2]float64{{hanging, hanging}, {shippedSeconds/2 - 10, shippedSeconds / 2}} {
		rows := s.queryAt(t, shippedExpressions(t)["overview, Hangs"][i], float64(at))
		if len(rows) != 1 || rows[0].Metric["resource"] != "hangs" ||
			rows[0].Value.value < between[0] || rows[0].Value.value > between[1] {
			t.Errorf("%s: column %d of the table of hangs is %v", s.name, i, rows)
		}
	}
}

// boundOf returns the value of a resource in the figure with a given name.
func (s shippedServer) boundOf(t *testing.T, name, resource string, at int64) float64 {
	t.Helper()
	for _, x := range targetsOf(t)["resource, p99"] {
		if x.LegendFormat == name {
			if v := s.queryAt(t, s.withHidden(t, strings.ReplaceAll(x.Expr, "RESOURCE", resource)), float64(at)); len(
				v,
			) == 1 {
				return v[0].Value.value
			}
		}
	}
	return math.NaN()
}

type shippedTarget struct{ Expr, LegendFormat string }

// targetsOf returns the queries of all dashboards by dashboard and panel, as Grafana sends them for the last minute.
// RESOURCE replaces the resource.
func targetsOf(t *testing.T) map[string][]shippedTarget {
	t.Helper()
	all, grafana := rawTargets(t), strings.NewReplacer(
		"${cluster:regex}", ".*", "${namespace:regex}", ".*", "${job:regex}", "demo", "${instance:regex}", ".*",
		"${resources:regex}", ".*", "${resource:regex}", "RESOURCE", "$__interval_ms", "1000", "${__interval}", "1s",
		"$__interval", "1s", "$__rate_interval", "20s", "$__range", "60s",
	)
	for _, targets := range all {
		for i := range targets {
			targets[i].Expr = grafana.Replace(targets[i].Expr)
		}
	}
	return all
}

// rawTargets returns the queries of all dashboards by dashboard and panel, with Grafana's variables.
func rawTargets(t *testing.T) map[string][]shippedTarget {
	t.Helper()
	all := map[string][]shippedTarget{}
	type panel struct {
		Title   string
		Targets []shippedTarget
		Panels  []panel
	}
	var add func(board string, list []panel)
	add = func(board string, list []panel) {
		for _, p := range list {
			if where := board + ", " + p.Title; len(p.Targets) > 0 {
				all[where] = append(all[where], p.Targets...)
			}
			add(board, p.Panels)
		}
	}
	for _, name := range []string{"overview", "resource", "self"} {
		text, err := os.ReadFile("../dashboards/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var board struct{ Panels []panel }
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(err)
		}
		add(name, board.Panels)
	}
	return all
}

// shippedExpressions returns the expressions of the dashboards and of the rules, by their location.
func shippedExpressions(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for where, targets := range targetsOf(t) {
		for _, x := range targets {
			all[where] = append(all[where], strings.ReplaceAll(x.Expr, "RESOURCE", "3ms"))
		}
	}
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := os.ReadFile("../dashboards/rules/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Groups []struct {
				Rules []struct{ Record, Alert, Expr string }
			}
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				where := name + ", " + r.Record + r.Alert
				all[where] = append(all[where], r.Expr)
			}
		}
	}
	if n := len(slices.Collect(maps.Keys(all))); n < 100 {
		t.Errorf("only %d places have expressions", n)
	}
	return all
}
