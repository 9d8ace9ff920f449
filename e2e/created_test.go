package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// firstCalls is the number of calls of each resource in [TestFirstCallsOfAResource]. All are made between two scrapes.
const firstCalls = 40

// TestFirstCallsOfAResource creates a resource by its first calls, between two scrapes of /metrics. A Prometheus that
// converts created timestamps to zeros must show these calls as an increase. A Prometheus without this feature must
// show no increase, and must not have additional series.
func TestFirstCallsOfAResource(t *testing.T) {
	t.Parallel()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	serve(t, page, l)
	metrics := job{name: "metrics", path: metricsPath, targets: []string{l.Addr().String()}, interval: 5 * time.Second}
	zeros := prepareServer(t, "prometheus-3-zeros", prometheus3, metrics)
	zeros.args = append(zeros.args, "--enable-feature=created-timestamp-zero-ingestion")
	zeros.start(t)
	plain := startServer(t, "prometheus-3", prometheus3, metrics)
	for name, s := range map[string]*server{"first": zeros, "second": zeros, "third": plain} {
		t.Run(s.name+" "+name, func(t *testing.T) {
			t.Parallel()
			scraped := func(expression string, times int) []sample {
				t.Helper()
				deadline := time.Now().Add(catchUp)
				for ; time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
					if result := s.query(t, expression+"[5m]"); len(result) == 1 && len(result[0].Values) >= times {
						return result[0].Values
					}
				}
				t.Fatalf("%s does not scrape %s", s.name, expression)
				return nil
			}
			scraped("windowstat_leaves", 2)
			if name == "second" {
				time.Sleep(2 * time.Second) // move to a different time between two scrapes
			}
			for range firstCalls {
				if err := c.Resource(name).Do(func() error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			for _, metric := range []string{
				"windowstat_pass_total", "windowstat_complete_total",
				"windowstat_rt_seconds_count",
			} {
				series := fmt.Sprintf("%s{resource=%q}", metric, name)
				samples := scraped(series, 3)
				last := samples[len(samples)-1]
				want := 0.0
				if s == zeros {
					want = firstCalls
				}
				at := float64(last.at) / 1000 // after this time increase() would extrapolate
				if result := s.queryAt(t, "increase("+series+"[1m])", at); len(result) != 1 ||
					result[0].Value.value != want {
					t.Errorf("%s: the increase of %s is %v, want %v: %v", s.name, series, result, want, samples)
				}
			}
			if created := s.query(t, `{__name__=~"windowstat_.*_created"}`); len(created) > 0 {
				t.Errorf("%s has %d series of created timestamps", s.name, len(created))
			}
			checkCounters(t, s)
		})
	}
}
