package deploy

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var promtool = flag.String("promtool", "", "the promtool with which TestConfiguredRules checks rules; skipped if empty")

// texts returns the dashboards and the expressions of the rules of the mixin with a configuration, and the names of
// recorded metrics.
func texts(t *testing.T, config string) (boards map[string]string, expressions, records []string) {
	t.Helper()
	m := mixin(t, config)
	boards = map[string]string{}
	for name, d := range m.Dashboards {
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		boards[name] = string(b)
	}
	for _, r := range []rules{m.Rules, m.Alerts} {
		for _, g := range r.Groups {
			for _, rule := range g.Rules {
				expressions = append(expressions, rule.Expr.StrVal)
				records = append(records, rule.Record)
			}
		}
	}
	return boards, expressions, records
}

// changes returns the number of expressions that a configuration changes. It fails the test if undo does not restore
// the default ones.
func changes(t *testing.T, config string, undo func(string) string) (changed int) {
	t.Helper()
	_, before, _ := texts(t, "{}")
	_, after, _ := texts(t, config)
	for i, e := range after {
		if e != before[i] {
			changed++
		}
		if undo(e) != before[i] {
			t.Errorf("%s changes\n%s\nto\n%s", config, before[i], e)
		}
	}
	return changed
}

// metric matches a metric of windowstat, except names after a colon, and the character behind it.
var metric = regexp.MustCompile(`(^|[^:\w])windowstat_[a-z_]+([^a-z_]|$)`)

// The selector is in every selector of a metric of windowstat, in rules and dashboards, and changes nothing else.
func TestMixinSelector(t *testing.T) {
	const selector = `env="prod",job=~"shop.*"`
	const config = "{ selector: '" + selector + "' }"
	changed := changes(t, config, strings.NewReplacer("{"+selector+"}", "", selector+",", "").Replace)
	boards, expressions, _ := texts(t, config)
	selected := 0
	for _, e := range expressions {
		for _, at := range metric.FindAllStringSubmatchIndex(e, -1) {
			switch end := e[at[4]:]; {
			case strings.HasPrefix(end, "{"+selector):
				selected++
			case !strings.HasPrefix(end, ":"):
				t.Errorf("no selector in %s", e)
			}
		}
	}
	if selected < 40 || changed < 20 {
		t.Errorf("%d selectors in %d expressions", selected, changed)
	}
	quoted, _ := json.Marshal(selector)
	want := "{" + string(quoted[1:len(quoted)-1]) + ","
	for name, b := range boards {
		n := 0
		for _, at := range metric.FindAllStringSubmatchIndex(b, -1) {
			if end := b[at[4]:]; strings.HasPrefix(end, "{") {
				if n++; !strings.HasPrefix(end, want) {
					t.Errorf("%s: no selector in %.200s", name, b[at[0]:])
				}
			}
		}
		for _, rest := range strings.Split(b, `__name__=~\"windowstat_`)[1:] {
			if n++; !strings.HasSuffix(b[:strings.Index(b, rest)], want+`__name__=~\"windowstat_`) {
				t.Errorf("%s: no selector before %.100s", name, rest)
			}
		}
		if strings.Contains(b, `ALERTS{env`) || n < 20 {
			t.Errorf("%s: %d selectors", name, n)
		}
	}
}

// The label of clusters is in each list of labels with a target, and in the selectors of the dashboards.
func TestMixinClusterLabel(t *testing.T) {
	const config = `{ clusterLabel: 'region' }`
	changed := changes(t, config, func(e string) string { return strings.ReplaceAll(e, "(region, ", "(") })
	boards, expressions, _ := texts(t, config)
	lists := 0
	for _, e := range expressions {
		for _, m := range regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`).FindAllStringSubmatch(e, -1) {
			labels := strings.Split(m[1], ", ")
			target := slices.Contains(labels, "job") || slices.Contains(labels, "instance")
			if slices.Contains(labels, "region") != target {
				t.Errorf("%s in %s", m[0], e)
			}
			if target {
				lists++
			}
		}
	}
	if lists < 30 || changed < 20 {
		t.Errorf("%d lists in %d expressions", lists, changed)
	}
	for name, b := range boards {
		selects := strings.Contains(b, "region=~`${cluster:regex}`") && strings.Contains(b, `, region)"`)
		if !selects || strings.Contains(b, "cluster=~") {
			t.Errorf("%s does not select by region", name)
		}
	}
}

// Rules on single seconds look back by the scrape interval and ten seconds. The dashboards end a scrape interval ago.
func TestMixinScrapeInterval(t *testing.T) {
	_, before, _ := texts(t, "{}")
	for _, interval := range []int{10, 30, 60} {
		boards, after, _ := texts(t, fmt.Sprintf(`{ scrapeInterval: %d }`, interval))
		offsets := strings.NewReplacer(
			"offset 30s", fmt.Sprintf("offset %ds", interval+10), "offset 40s", fmt.Sprintf("offset %ds", interval+20),
		)
		changed := 0
		for i, e := range after {
			if want := offsets.Replace(before[i]); e != want {
				t.Errorf("%d s: got %s, want %s", interval, e, want)
			} else if e != before[i] {
				changed++
			}
		}
		if changed < 10 {
			t.Errorf("%d s: %d expressions changed", interval, changed)
		}
		for name, b := range boards {
			if !strings.Contains(b, fmt.Sprintf(`"to":"now-%ds"`, interval)) || strings.Contains(b, "now-20s") {
				t.Errorf("%s does not end %d seconds ago", name, interval)
			}
		}
	}
}

// The namespace is the prefix of all metrics, recorded ones included.
func TestMixinNamespace(t *testing.T) {
	const config = `{ namespace: 'shop' }`
	changed := changes(t, config, func(e string) string { return strings.ReplaceAll(e, "shop_", "windowstat_") })
	boards, _, records := texts(t, config)
	all := fmt.Sprint(boards, records)
	if strings.Contains(all, "windowstat_") || !strings.Contains(all, "shop_rules:evaluated") || changed < 30 {
		t.Errorf("windowstat_ is in %s", all)
	}
}

// Dashboards have the configured titles and tags, and link to each other by the tags.
func TestMixinDashboards(t *testing.T) {
	m := mixin(t, `{ dashboardPrefix: 'Shop / ', dashboardTags: ['shop', 'team-a'], runbookBase: 'https://wiki/' }`)
	for name, d := range m.Dashboards {
		board := d.(map[string]any)
		if title := board["title"].(string); !strings.HasPrefix(title, "Shop / windowstat") {
			t.Errorf("%s has the title %q", name, title)
		}
		for _, tagged := range append(board["links"].([]any), board) {
			if x := tagged.(map[string]any); x["type"] == "dashboards" || x["title"] == board["title"] {
				if fmt.Sprint(x["tags"]) != "[shop team-a]" {
					t.Errorf("%s: %v has the tags %v", name, x["title"], x["tags"])
				}
			}
		}
		b, _ := json.Marshal(board)
		if name == "windowstat-overview.json" && !strings.Contains(string(b), `"query":"https://wiki/"`) {
			t.Errorf("%s leads to another runbook", name)
		}
	}
}

// All resources have one objective of errors, and a single resource may have another.
func TestMixinErrorObjectives(t *testing.T) {
	want := map[string]string{
		"windowstat_errors:default_objective map[]":                     "vector(0.99)",
		"resource:windowstat_errors:objective map[resource:checkout]":   "vector(0.9995)",
		"resource:windowstat_errors:objective map[resource:GET /users]": "vector(0.95)",
	}
	m := mixin(t, `{ defaultErrorObjective: 0.99, errorObjectives: { checkout: 0.9995, 'GET /users': 0.95 } }`)
	for _, g := range m.Alerts.Groups {
		for _, r := range g.Rules {
			if key := fmt.Sprint(r.Record, " ", r.Labels); r.Expr.StrVal == want[key] {
				delete(want, key)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no %v", want)
	}
}

// promtool accepts the rules of a mixin with every key. They fire for the calls of a cluster whose errors exceed its
// objective, at the delay of its scrape interval.
func TestConfiguredRules(t *testing.T) {
	if *promtool == "" {
		t.Skip("no -promtool")
	}
	m := mixin(t, `{
		selector: 'env="prod"', clusterLabel: 'region', scrapeInterval: 60, namespace: 'shop',
		runbookBase: 'https://wiki/', errorObjectives: { checkout: 0.95, search: 0.9995 },
		objectives: [{ resource: 'checkout', threshold: '250ms', share: 0.999 }], callsInOneSecond: { checkout: 400 },
	}`)
	dir := t.TempDir()
	for name, r := range map[string]rules{"recording.yaml": m.Rules, "alerts.yaml": m.Alerts} {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b = []byte(strings.ReplaceAll(string(b), `"Groups":`, `"groups":`))
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const test = `
rule_files: [recording.yaml, alerts.yaml]
evaluation_interval: 30s
tests:
  - name: two in a hundred calls of a region fail, of checkout, of search, and of a search that is not selected
    interval: 1s
    input_series:
      - {series: 'shop_persecond_complete{env="prod",region="a",job="s",resource="checkout"}', values: '100x1200'}
      - {series: 'shop_persecond_exception{env="prod",region="a",job="s",resource="checkout"}', values: '2x1200'}
      - {series: 'shop_persecond_complete{env="prod",region="a",job="s",resource="search"}', values: '100x1200'}
      - {series: 'shop_persecond_exception{env="prod",region="a",job="s",resource="search"}', values: '0x1200'}
      - {series: 'shop_persecond_complete{env="prod",region="b",job="s",resource="search"}', values: '100x1200'}
      - {series: 'shop_persecond_exception{env="prod",region="b",job="s",resource="search"}', values: '2x1200'}
      - {series: 'shop_persecond_complete{env="test",region="c",job="s",resource="search"}', values: '100x1200'}
      - {series: 'shop_persecond_exception{env="test",region="c",job="s",resource="search"}', values: '2x1200'}
      - {series: 'shop_persecond_pass{env="prod",region="b",job="s",resource="search"}', values: '5x600 700 5x599'}
    promql_expr_test:
      - expr: job_resource:shop_persecond_pass:max1m # the second 601 is in the minute that ended 70 seconds ago
        eval_time: 12m
        exp_samples:
          - labels: job_resource:shop_persecond_pass:max1m{region="b",job="s",resource="search"}
            value: 700
      - expr: job_resource:shop_persecond_pass:max1m
        eval_time: 11m
        exp_samples:
          - labels: job_resource:shop_persecond_pass:max1m{region="b",job="s",resource="search"}
            value: 5
      - {expr: 'shop_rules:evaluated', eval_time: 1m, exp_samples: [{labels: 'shop_rules:evaluated', value: 1}]}
    alert_rule_test:
      - alertname: WindowstatErrorBudgetBurn
        eval_time: 15m
        exp_alerts:
          - exp_labels: {severity: critical, region: b, job: s, resource: search}
            exp_annotations:
              summary: 2% of the calls of search failed within an hour
              description: The error budget of 30 days would be spent in two.
              runbook_url: https://wiki/WindowstatErrorBudgetBurn
`
	if err := os.WriteFile(filepath.Join(dir, "test.yaml"), []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", "recording.yaml", "alerts.yaml"},
		{"test", "rules", "test.yaml"},
	} {
		c := exec.Command(*promtool, args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", args, err, out)
		}
	}
}

// Only alerts on calls that hang, fail or are slow are critical. No alert always fires.
func TestSeverities(t *testing.T) {
	var critical []string
	for _, g := range mixin(t, "{}").Alerts.Groups {
		for _, r := range g.Rules {
			if r.Labels["severity"] == "critical" {
				critical = append(critical, r.Alert)
			}
			if r.Alert != "" && r.Expr.StrVal == "vector(1)" {
				t.Errorf("%s always fires", r.Alert)
			}
		}
	}
	want := []string{
		"WindowstatHanging", "WindowstatFailing", "WindowstatErrorBudgetBurn", "WindowstatLatencyBudgetBurn",
	}
	if !slices.Equal(critical, want) {
		t.Errorf("critical are %v, want %v", critical, want)
	}
}
