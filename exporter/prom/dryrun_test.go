package prom_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/prom"
)

// dryRunLines returns the samples of dry runs on a page, without the namespace.
func dryRunLines(body string) string {
	var all strings.Builder
	for line := range strings.Lines(body) {
		if strings.Contains(line, "dry_run") && !strings.HasPrefix(line, "#") {
			all.WriteString(strings.TrimPrefix(line, "windowstat_"))
		}
	}
	return all.String()
}

// Both pages report the calls that a dry run would have refused. The totals begin with zero. The seconds begin with the
// first such call and end a minute after the last one, for every scraper and every selection, even if the dry run was
// removed. Without dry runs the pages have none of these metrics.
func TestDryRunsOnThePages(t *testing.T) {
	c, now := service(t, collector.Options{})
	r := c.Resource("a")
	page, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	total := func() string {
		rec := httptest.NewRecorder()
		page.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		return rec.Body.String()
	}
	read := newScraper(t, c, prom.SecondsOptions{})
	call := func(n int) {
		for range n {
			if err := r.Do(func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		*now = now.Add(time.Second)
	}
	set := func(limits ...collector.Limit) {
		t.Helper()
		if err := c.SetLimits(limits); err != nil {
			t.Fatal(err)
		}
	}
	set(collector.Limit{Resource: "a", Count: 100})
	call(1)
	if body := total() + read.get("cursor=a").Body.String(); strings.Contains(body, "dry_run") {
		t.Errorf("without dry runs:\n%s", body)
	}
	set(
		collector.Limit{Resource: "a", Count: 2, DryRun: true},
		collector.Limit{Resource: "*", Origin: "x", Count: 0, DryRun: true},
	)
	call(0)
	call(2)
	none := `dry_run_block_total{reason="qps a",resource="a"} 0
dry_run_block_total{reason="qps * from x",resource="a"} 0
`
	if got := dryRunLines(total()); got != none {
		t.Errorf("before the first refusal:\n%swant\n%s", got, none)
	}
	if body := read.get("cursor=a").Body.String(); strings.Contains(body, "dry_run") {
		t.Errorf("before the first refusal:\n%s", body)
	}
	call(0)
	call(5)
	_, e, err := c.Enter(context.Background(), "a", collector.Origin("x"), collector.Batch(2))
	if err != nil {
		t.Fatal(err)
	}
	e.Exit(nil)
	call(3)
	set()
	call(9)
	want := `persecond_dry_run_block{reason="qps a",resource="a"} 3 1767323049000
persecond_dry_run_block{reason="qps a",resource="a"} 1 1767323050000
persecond_dry_run_block{reason="qps a",resource="a"} 0 1767323051000
persecond_dry_run_block{reason="qps * from x",resource="a"} 2 1767323050000
persecond_dry_run_block{reason="qps * from x",resource="a"} 0 1767323051000
`
	for _, query := range []string{
		"cursor=a", "window=20s", "metric=persecond_dry_run_block&cursor=b",
		"resource=a&window=9s&histogram=classic",
	} {
		if got := dryRunLines(read.get(query).Body.String()); got != want {
			t.Errorf("%s:\n%swant\n%s", query, got, want)
		}
	}
	want = strings.NewReplacer("} 0\ndry", "} 4\ndry", "} 0\n", "} 2\n").Replace(none)
	if got := dryRunLines(total()); got != want {
		t.Errorf("afterwards:\n%swant\n%s", got, want)
	}
	for _, query := range []string{"metric=persecond_pass&window=20s", "resource=b&window=20s"} {
		if body := read.get(query).Body.String(); strings.Contains(body, "dry_run") {
			t.Errorf("%s: dry runs are not selected:\n%s", query, body)
		}
	}
	*now = now.Add(3 * time.Minute)
	// The scraper already has one second of the minute.
	if n := strings.Count(dryRunLines(read.get("cursor=a").Body.String()), "\n"); n != 59+59 {
		t.Errorf("%d samples after the last refused call", n)
	}
}

// A response respects its limit on samples, including the samples of dry runs.
func TestDryRunsFitIntoAResponse(t *testing.T) {
	const reasons = 10
	c, now := service(t, collector.Options{})
	var limits []collector.Limit
	for i := range reasons {
		limits = append(limits, collector.Limit{Resource: "a", Origin: fmt.Sprint(i), Count: 0, DryRun: true})
	}
	if err := c.SetLimits(limits); err != nil {
		t.Fatal(err)
	}
	second := len(table.Seconds()) + reasons + 1 // plus one for the run
	for range 10 {
		for i := range reasons {
			_, e, _ := c.Enter(context.Background(), "a", collector.Origin(fmt.Sprint(i)))
			e.Exit(nil)
		}
		*now = now.Add(time.Second)
	}
	read := newScraper(t, c, prom.SecondsOptions{MaxSamples: 2 * second})
	for k := range 5 {
		body := read.whole("cursor=a").Body.String()
		samples := 0
		for line := range strings.Lines(body) {
			if !strings.HasPrefix(line, "#") {
				samples++
			}
		}
		if n := strings.Count(dryRunLines(body), "\n"); n != 2*reasons || samples != 2*second {
			t.Errorf("response %d: %d samples, %d of dry runs; want %d and %d", k, samples, n, 2*second, 2*reasons)
		}
	}
}
