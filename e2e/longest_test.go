package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestLongSelections selects thirty resources and forty targets with long names on all dashboards, and sends each query
// to VictoriaMetrics, which refuses queries of more than 16 KiB.
func TestLongSelections(t *testing.T) {
	t.Parallel()
	vm := startServer(t, "victoria", victoria)
	var targets, names []string
	for i := range 40 {
		targets = append(targets, fmt.Sprintf("checkout-7d9f8b6c5d-%02dx2x.prod-west-1:9719", i))
	}
	for i := range 30 {
		names = append(names, fmt.Sprintf("GET /api/v1.%02d/{region}/customers/{customer}/orders/{order}/", i))
	}
	chosen := strings.NewReplacer(
		"${cluster:regex}", selected("a.b", "c.d"),
		"${namespace:regex}", selected("shop-a", "shop-b"),
		"${job:regex}", selected("shop", "orders"),
		"${instance:regex}", selected(targets...),
		"${resources:regex}", selected(names...),
		"${resource:regex}", selected(names[0]),
		"${total:raw}", "inbound_",
		"${fine:raw}", "",
		"$__interval_ms", "1000",
		"${__interval}", "1s",
		"$__interval", "1s",
		"$__rate_interval", "20s",
		"$__range", "60s",
	)
	refused := func(expr string) error {
		_, err := vm.get(
			"/api/v1/query_range",
			url.Values{"query": {expr}, "start": {"-1m"}, "end": {"now"}, "step": {"5s"}, "nocache": {"1"}},
		)
		return err
	}
	if err := refused("vector(1) # " + strings.Repeat("x", 16<<10)); err == nil ||
		!strings.Contains(err.Error(), "16384") {
		t.Fatalf("VictoriaMetrics takes queries of any length: %v", err)
	}
	n, most := 0, 0
	for where, targets := range rawTargets(t) {
		for _, x := range targets {
			expr := chosen.Replace(x.Expr)
			n, most = n+1, max(most, len(expr))
			if err := refused(expr); err != nil {
				t.Errorf("%s: a query of %d bytes: %.200s", where, len(expr), err)
			}
		}
	}
	if n < 150 {
		t.Errorf("only %d queries", n)
	}
	t.Logf("%d queries of up to %d bytes", n, most)
}

// selected is the regular expression that Grafana makes of the selected values of a variable.
func selected(values ...string) string {
	var escaped []string
	for _, v := range values {
		escaped = append(escaped, regexp.MustCompile(`[\\^$*+?.()|[\]{}/]`).ReplaceAllString(v, `\$0`))
	}
	if len(escaped) == 1 {
		return escaped[0]
	}
	return "(" + strings.Join(escaped, "|") + ")"
}

// Of two targets with the same two resources, one resource of one target is selected, and the table of hangs and the
// quantiles show nothing of the others, although parts of their queries select all targets.
func TestSelectionOfOneTarget(t *testing.T) {
	t.Parallel()
	vm := startServer(t, "victoria", victoria)
	now := time.Now().Unix()
	var rows strings.Builder
	for i, x := range []struct{ instance, resource string }{
		{"one", "db"}, {"one", "cache"}, {"two", "db"}, {"two", "cache"},
	} {
		labels := fmt.Sprintf(`{job="shop",instance=%q,resource=%q`, x.instance, x.resource)
		rt := []float64{0.02, 7, 8, 9}[i]
		for second := now - 60; second <= now; second++ {
			line := func(name, more string, value float64) {
				fmt.Fprintf(&rows, "windowstat_%s%s%s} %v %d\n", name, labels, more, value, second*1000)
			}
			line("persecond_in_flight", "", float64(5+i))
			line("in_flight", "", float64(5+i))
			line("in_flight_elapsed_seconds", "", float64((5+i)*(12+i)))
			count := 0.
			if second < now-20 {
				count = 10
				line("persecond_rt_max_seconds", "", rt)
				line("persecond_rt_min_seconds", "", rt/2)
				line(
					"persecond_rt_distribution_seconds_bucket",
					fmt.Sprintf(`,vmrange="%g...%g"`, rt*.9, rt*1.1),
					count,
				)
			}
			line("persecond_complete", "", count)
			for _, le := range []float64{0.01, 0.1, 1, 10} {
				if total := float64(min(second, now-20)-now+60) * 10; rt <= le {
					line("rt_seconds_bucket", fmt.Sprintf(`,le="%g"`, le), total)
				} else {
					line("rt_seconds_bucket", fmt.Sprintf(`,le="%g"`, le), 0)
				}
			}
			line("rt_seconds_bucket", `,le="+Inf"`, float64(min(second, now-20)-now+60)*10)
		}
	}
	resp, err := http.Post(
		"http://"+vm.addr+"/api/v1/import/prometheus",
		"text/plain",
		strings.NewReader(rows.String()),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatal(resp.Status, err)
	}
	vm.show(t)
	chosen := strings.NewReplacer(
		"${cluster:regex}", ".*",
		"${namespace:regex}", ".*",
		"${job:regex}", "shop",
		"${instance:regex}", "one",
		"${resources:regex}", "db",
		"${resource:regex}", "db",
		"${total:raw}", "",
		"${fine:raw}", "",
		"$__rate_interval", "60s",
		"$__range", "60s",
	)
	targets := rawTargets(t)
	for _, x := range []struct {
		panel     string
		query     int
		low, high float64
	}{
		{"overview, Hangs", 0, 5, 5},
		{"overview, Hangs", 1, 12, 12},
		{"resource, Hangs", 0, 5, 5},
		{"resource, Hangs", 1, 12, 12},
		{"overview, Resources", 8, .02, .02},
		{"overview, Resources", 9, .018, .02},
		{"overview, p99", 1, .018, .02},
		{"overview, p99", 2, .01, .02},
		{"overview, p99", 3, .02, .02},
		{"overview, p99 by resource", 1, .018, .02},
		{"overview, p99 by resource", 2, .02, .02},
		{"resource, p99", 1, .018, .02},
		{"resource, p99", 2, .01, .02},
		{"resource, p99", 3, .02, .02},
	} {
		got := vm.queryAt(t, chosen.Replace(targets[x.panel][x.query].Expr), float64(now))
		if len(got) != 1 || !(x.low <= got[0].Value.value && got[0].Value.value <= x.high) {
			t.Errorf("%s, query %d: %v, and not from %v to %v", x.panel, x.query, got, x.low, x.high)
		}
	}
}
