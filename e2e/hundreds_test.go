//go:build fleet

package e2e

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
)

const (
	hundredsInstances = 200
	hundredsResources = 100
	hundredsInterval  = 5 * time.Second
	hundredsSeconds   = 60
)

// TestHundredsOfInstances runs two hundred instances with a hundred resources each. They push ten metrics to one
// VictoriaMetrics: 200,000 samples a second for a minute. Each instance is a Collector and a Pusher, as in a service.
// Two things are simulated: all instances share this process, and the process opens their seconds. Afterwards every
// sample of every second must be stored once.
func TestHundredsOfInstances(t *testing.T) {
	server := startServer(t, "victoria", victoria)
	var resources []string
	for i := range hundredsResources {
		resources = append(resources, fmt.Sprintf("GET /api/v1/customers/{customer}/orders/{order}/items/%04d", i))
	}
	begin := time.Now().Unix() + int64(hundredsInterval/time.Second) + 2
	var instances []*paced
	var pushes []*push.Pusher
	for i := range hundredsInstances {
		p := newPaced(t, time.Unix(begin, 0), resources, collector.Options{})
		p.calls = func(resource int, second int64) count { return count{pass: 1 + (i+resource+int(second))%3} }
		push, err := push.New(p.stats, push.Options{
			URL:      writeTo(server),
			Labels:   map[string]string{"job": "hundreds", "instance": fmt.Sprintf("10.0.%d.%d:9719", i/250, i%250)},
			Interval: hundredsInterval, Metrics: scaled,
		})
		if err != nil {
			t.Fatal(err)
		}
		instances, pushes = append(instances, p), append(pushes, push)
	}
	var stops []func() error
	for _, push := range pushes {
		stops = append(stops, push.Start())
		time.Sleep(hundredsInterval / hundredsInstances) // instances of a fleet push at different times
	}
	time.Sleep(time.Until(time.Unix(begin, 0)))
	cost := -server.cpu(t)
	end, late := begin+hundredsSeconds, time.Duration(0)
	first := instances[0]
	first.live(func() bool {
		late = max(late, time.Since(time.Unix(first.second, 0)))
		for _, p := range instances[1:] {
			p.tick()
		}
		return first.second < end
	})
	var stopped sync.WaitGroup
	for _, stop := range stops {
		stopped.Go(func() { // sends the remaining samples
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
	stopped.Wait()
	t.Logf("seconds were opened at most %v late; all was sent %v after the last", late,
		time.Since(time.Unix(end, 0)).Round(100*time.Millisecond))
	server.show(t)
	cost += server.cpu(t) // not counting the queries below

	// Queries find new series only some time after the samples have been stored.
	all := fmt.Sprintf(`count(last_over_time({__name__=~"windowstat_persecond_.+",job="hundreds"}[%ds])) or vector(0)`,
		hundredsSeconds)
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		server.show(t)
		if server.queryAt(t, all, float64(end-1))[0].
			Value.value == float64(hundredsInstances*hundredsResources*len(scaled)) {
			break
		}
	}
	samples := 0.0
	for _, metric := range scaled {
		counts, n := fmt.Sprintf(`sum(count_over_time(%s{job="hundreds"}[999ms]))`, metric), 0
		for _, x := range server.queryRange(t, counts, begin, end-1, 1) {
			for _, v := range x.Values {
				n++
				samples += v.value
				if v.value != hundredsInstances*hundredsResources {
					t.Errorf("%v samples of %s in second %d", v.value, metric, v.at/1000-begin)
				}
			}
		}
		if n != hundredsSeconds {
			t.Errorf("%d seconds of %s", n, metric)
		}
	}
	for _, x := range server.queryRange(t, `sum(last_over_time(windowstat_persecond_pass{job="hundreds"}[999ms]))`,
		begin, end-1, 1) {
		for _, v := range x.Values {
			want := 0
			for _, p := range instances {
				for resource := range resources {
					want += p.calls(resource, v.at/1000).pass
				}
			}
			if v.value != float64(want) {
				t.Errorf("%v calls in second %d; there were %d", v.value, v.at/1000-begin, want)
			}
		}
	}
	t.Logf("%s: %.1f s of CPU, %.2f s for a million samples", server.name, cost, cost/samples*1e6)
	disk := size(t, filepath.Join(server.dir, "data"))
	t.Logf("%.0f samples, %.0f a second; %.2f bytes of each on disk", samples,
		samples/hundredsSeconds, float64(disk)/samples)
}

// size returns the total size of the files in a directory.
func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
