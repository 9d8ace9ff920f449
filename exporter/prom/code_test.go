package prom_test

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/vm"
)

// answering returns a service whose calls end with codes of all kinds, and the expected sums of completions.
func answering(t *testing.T) (c *collector.Collector, want map[string]int) {
	c, _ = service(t, collector.Options{MaxResources: 2})
	want = map[string]int{}
	codes := []collector.Code{
		{},
		collector.HTTPStatus(200),
		collector.HTTPStatus(401),
		collector.GRPCCode(5),
		collector.HTTPStatus(0),
		collector.HTTPStatus(600),
	}
	for i := range 700 {
		name := []string{"a", "b", "c", "d"}[i%4]
		_, e, err := c.Enter(
			t.Context(),
			name,
			collector.Origin(fmt.Sprint("o", i%3)),
			collector.Entrance(fmt.Sprint("e", i%2)),
			collector.Batch(int64(1+i%5)),
			collector.Inbound(),
		)
		if err != nil {
			t.Fatal(err)
		}
		code := codes[i%len(codes)]
		e.ExitCode(nil, code)
		if i%4 > 1 {
			name = collector.Other
		}
		want[name+" "+code.String()] += 1 + i%5
		want["inbound "+code.String()] += 1 + i%5
	}
	e := c.Resource("a").Enter() // a call without a code
	e.Exit(nil)
	want["a "]++
	want["b "] = 0 // all calls of b have a code
	return c, want
}

var (
	completes = regexp.MustCompile(`(?m)^windowstat_(inbound_)?complete_total(?:\{(.*)\})? (\d+)(?:\.0)?$`)
	label     = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// sums returns the sums of complete_total on a page by resource and code, over all other labels.
func sums(t *testing.T, page string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, m := range completes.FindAllStringSubmatch(page, -1) {
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			labels[l[1]] = l[2]
		}
		resource := labels["resource"]
		if m[1] != "" {
			resource = "inbound"
		}
		var n int
		if _, err := fmt.Sscan(m[3], &n); err != nil {
			t.Fatal(err)
		}
		all[resource+" "+labels["code"]] += n
	}
	return all
}

// Each page has each completion in exactly one series, so the sums by resource and code are the same by origin, by
// entrance and without either label.
func TestCompletionsByCodeAddUp(t *testing.T) {
	c, want := answering(t)
	for _, by := range []prom.By{"", prom.ByOrigin, prom.ByEntrance} {
		h, err := prom.Handler(c, prom.Options{By: by})
		if err != nil {
			t.Fatal(err)
		}
		for _, accept := range []string{"text/plain", "application/openmetrics-text"} {
			r := httptest.NewRequest("GET", "/metrics", nil)
			r.Header.Set("Accept", accept)
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if got := sums(t, rec.Body.String()); !maps.Equal(got, want) {
				t.Errorf("by %q, %s:\n got %v\nwant %v", by, accept, got, want)
			}
			if strings.Contains(rec.Body.String(), `code=""`) ||
				by == "" && !strings.Contains(rec.Body.String(), "windowstat_complete_total{resource=\"a\"} ") {
				t.Errorf("by %q, %s: calls without a code must be in the series without the label code", by, accept)
			}
		}
		w, err := vm.New(c, vm.Options{By: by})
		if err != nil {
			t.Fatal(err)
		}
		var page strings.Builder
		if w.WriteMetrics(&page); !maps.Equal(sums(t, page.String()), want) {
			t.Errorf("by %q, vm: %v, want %v", by, sums(t, page.String()), want)
		}
		// A pedantic registry accepts the metrics: all series have the same labels.
		families, err := register(t, c, prom.Options{By: by}).Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, f := range families {
			if f.GetName() != "windowstat_complete_total" {
				continue
			}
			for _, m := range f.Metric {
				labels := map[string]string{}
				for _, l := range m.Label {
					labels[l.GetName()] = l.GetValue()
				}
				names := []string{"code", "resource"}
				if by != "" {
					names = []string{"code", string(by), "resource"}
				}
				if !slices.Equal(slices.Sorted(maps.Keys(labels)), names) {
					t.Errorf("by %q: labels %v", by, labels)
				}
				got[labels["resource"]+" "+labels["code"]] += int(m.Counter.GetValue())
			}
		}
		for k, n := range want {
			if !strings.HasPrefix(k, "inbound ") && got[k] != n {
				t.Errorf("by %q, registry: %s is %d, want %d", by, k, got[k], n)
			}
		}
	}
}
