package exporter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// sum adds the samples of a metric of single seconds without labels.
func sum(page, metric string) (n, seconds int) {
	for line := range strings.Lines(page) {
		var v, at int
		if k, _ := fmt.Sscanf(line, metric+" %d %d", &v, &at); k == 2 {
			n, seconds = n+v, seconds+1
		}
	}
	return n, seconds
}

// If a hundred requests each call a database by context and a cache by handle, every total is a hundred. After a
// restart with the same log, the total includes the requests of the previous process.
func TestTotalCountsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 100
		options := exporter.Options{App: "shop", Log: metriclog.Options{Dir: t.TempDir()}, Logger: quiet}
		x, err := exporter.New(options)
		if err != nil {
			t.Fatal(err)
		}
		stop := x.Start()
		c, handle := x.Collector, x.Collector.Resource("cache")
		for i := range requests {
			err := c.Do(t.Context(), "GET /", func(ctx context.Context) error {
				_ = c.Do(ctx, "db", func(context.Context) error { return nil }, collector.Outbound())
				_ = handle.Do(func() error { return nil })
				if i%10 == 0 {
					return errors.New("no")
				}
				return nil
			}, collector.Inbound())
			if (err != nil) != (i%10 == 0) {
				t.Fatal(err)
			}
		}
		_, page := get(t, x.Handler(), "/metrics")
		for _, line := range []string{
			"windowstat_inbound_pass_total 100\n",
			"windowstat_inbound_exception_total 10\n", "windowstat_inbound_rt_seconds_count 100\n",
		} {
			if !strings.Contains(page, line) {
				t.Errorf("no %q in\n%s", line, page)
			}
		}
		if strings.Contains(page, "windowstat_inbound_in_flight 1") ||
			strings.Count(page, `windowstat_pass_total{resource="`) != 3 {
			t.Fatalf("a call is in flight, or a resource is unexpected:\n%s", page)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for process := range 2 {
			_, page := get(t, x.Handler(), "/metrics/seconds?window=60s")
			if n, _ := sum(page, "windowstat_persecond_inbound_pass"); n != requests {
				t.Errorf("process %d: %d requests in the seconds, want %d:\n%s", process, n, requests, page)
			}
			if n, _ := sum(page, "windowstat_persecond_inbound_exception"); n != requests/10 {
				t.Errorf("process %d: %d exceptions", process, n)
			}
			_, page = get(t, x.Handler(), "/metrics/seconds?window=60s&resource=db")
			if strings.Contains(page, "_inbound_") {
				t.Errorf("process %d: the seconds of a resource include the total", process)
			}
			_, page = get(t, x.Handler(), "/metrics/seconds?window=60s&metric=persecond_inbound_pass")
			n, _ := sum(page, "windowstat_persecond_inbound_pass")
			if n != requests || strings.Contains(page, "resource=") {
				t.Errorf("process %d: %d requests with only this metric:\n%s", process, n, page)
			}
			if process == 0 {
				if x, err = exporter.New(options); err != nil {
					t.Fatal(err)
				}
				defer x.Close() //nolint:errcheck // never runs
			}
		}
	})
}

// A worker without requests has no total, not even zeros. Consumers that show totals add up its rows.
func TestWorkerHasNoTotal(t *testing.T) {
	now := time.Unix(1_767_323_045, 0)
	x, err := exporter.New(exporter.Options{Collector: collector.Options{Now: func() time.Time { return now }}})
	if err != nil {
		t.Fatal(err)
	}
	e := x.Collector.Resource("job").Enter()
	e.Exit(nil)
	now = now.Add(2 * time.Second)
	for _, path := range []string{"/metrics", "/metrics/seconds"} {
		code, page := get(t, x.Handler(), path)
		if code != http.StatusOK || !strings.Contains(page, `resource="job"`) || strings.Contains(page, "_inbound_") {
			t.Errorf("%s: %d\n%s", path, code, page)
		}
	}
}
