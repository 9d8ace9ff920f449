package e2e

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
)

// TestShortJob has a job of three seconds push its calls, including the second that is open at its end. No server could
// scrape the job in three seconds.
func TestShortJob(t *testing.T) {
	t.Parallel()
	servers := startServers(t)
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := metriclog.New(c, metriclog.Options{Dir: t.TempDir(), App: "job", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	pushes := pushTo(t, c, servers...)
	stops := []func() error{log.Start()}
	for _, p := range pushes {
		stops = append(stops, p.Start())
	}

	done := work(c, 3*time.Second)
	ended := time.Now()
	var stopped sync.WaitGroup
	for _, stop := range stops {
		stopped.Go(func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
	stopped.Wait()
	t.Logf("the job did %v; what was left of it was sent in %v", done, time.Since(ended).Round(time.Millisecond))

	want, end := logged(t, log)
	for resource, calls := range done {
		sum := 0.0
		for _, pass := range want[resource] {
			sum += pass
		}
		if sum != float64(calls) {
			t.Errorf("the log has %v calls of %s; %d were counted", sum, resource, calls)
		}
	}
	for _, p := range pushes {
		t.Run(p.server.name+"/"+p.job.name, func(t *testing.T) {
			selector := fmt.Sprintf(`windowstat_persecond_pass{job=%q}`, p.job.name)
			p.show(t)
			n := checkSamples(t, p.server, selector+"[5m]", want, end)
			for resource, calls := range done {
				sum := fmt.Sprintf(`sum_over_time(windowstat_persecond_pass{job=%q,resource=%q}[5m])`, p.job.name,
					resource)
				if got := p.server.number(t, sum); got != float64(calls) {
					t.Errorf("%s has %v calls of %s; %d were counted", p.server.name, got, resource, calls)
				}
			}
			t.Logf("%d samples", n)
		})
	}
}

// work calls two resources for some time, and returns the number of calls of each.
func work(c *collector.Collector, d time.Duration) map[string]int {
	done := map[string]int{}
	for begin := time.Now(); time.Since(begin) < d; time.Sleep(rand.N(3 * time.Millisecond)) {
		for _, resource := range []string{"read", "write"} {
			for range rand.N(3) {
				_ = c.Resource(resource).Do(func() error { return nil })
				done[resource]++
			}
		}
	}
	return done
}

// logged returns the calls that passed in each second of the metric log, including idle seconds, and the second after
// the last.
func logged(t *testing.T, log *metriclog.Writer) (pass values, end int64) {
	t.Helper()
	files, err := log.Files()
	rows, err2 := readLog(files)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	pass = values{}
	for _, row := range rows {
		if pass[row.Resource] == nil {
			pass[row.Resource] = map[int64]float64{}
		}
		pass[row.Resource][row.Start.Unix()] = float64(row.Pass)
		end = max(end, row.Start.Unix()+1)
	}
	for _, seconds := range pass {
		for second := slices.Min(slices.Collect(maps.Keys(seconds))); second < end; second++ {
			seconds[second] += 0 // idle ones have no row
		}
	}
	return pass, end
}

// TestSlot has consecutive runs of a job push to the series of one instance, the slot of the runs. A run ends after the
// end of its open second, so each second belongs to one run. Everything arrives, and no run creates separate series.
func TestSlot(t *testing.T) {
	t.Parallel()
	servers := []*server{startServer(t, "prometheus-3", prometheus3), startServer(t, "victoria", victoria)}
	total := map[string]int{}
	for range 3 {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var stops []func() error
		for _, s := range servers {
			p, err := push.New(c,
				push.Options{URL: writeTo(s), Labels: map[string]string{"job": "import", "instance": "worker-1"}})
			if err != nil {
				t.Fatal(err)
			}
			stops = append(stops, p.Start())
		}
		for resource, calls := range work(c, time.Second) {
			total[resource] += calls
		}
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, s := range servers {
		s.show(t)
		for resource, calls := range total {
			if got := s.number(t, fmt.Sprintf(`sum_over_time(windowstat_persecond_pass{job="import",resource=%q}[5m])`,
				resource)); got != float64(calls) {
				t.Errorf("%s has %v calls of %s; %d were counted", s.name, got, resource, calls)
			}
		}
	}
}
