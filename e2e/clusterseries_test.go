//go:build fleet

package e2e

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
)

// TestNewSeriesInCluster pushes some seconds of 200,000 new series to a cluster of VictoriaMetrics, as a rollout of two
// hundred instances does. It logs the number of series that queries find over time. At the end queries must find each
// sample of each second once, and the sums over all instances must be right.
func TestNewSeriesInCluster(t *testing.T) {
	if os.Getenv(clusterDir) == "" {
		t.Skip("the cluster 1.100 never shows all new series; set " + clusterDir + " to a directory of another version")
	}
	const seconds, job = 5, "rollout"
	storage := startCluster(t)
	var resources []string
	for i := range hundredsResources {
		resources = append(resources, fmt.Sprintf("GET /api/v1/orders/{order}/items/%04d", i))
	}
	begin := time.Now().Unix() - seconds - 2
	var instances []*paced
	var stops []func() error
	for i := range hundredsInstances {
		p := newPaced(t, time.Unix(begin, 0), resources, collector.Options{})
		p.calls = func(resource int, second int64) count { return count{pass: 1 + (i+resource+int(second))%3} }
		w, err := push.New(p.stats, push.Options{
			URL: storage.write, Metrics: scaled,
			Labels: map[string]string{"job": job, "instance": fmt.Sprintf("10.0.%d.%d:9719", i/250, i%250)},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range seconds {
			p.tick()
		}
		instances, stops = append(instances, p), append(stops, w.Start())
	}
	var stopped sync.WaitGroup
	for _, stop := range stops {
		stopped.Go(func() { // sends everything
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
	stopped.Wait()
	sent, end := time.Now(), begin+seconds
	t.Logf("sent in %v", time.Since(time.Unix(end, 0)).Round(time.Second))
	const all = hundredsInstances * hundredsResources
	want := float64(all * len(scaled))
	series := fmt.Sprintf(`{__name__=~"windowstat_persecond_.+",job=%q,resource!=""}`, job)
	count := fmt.Sprintf(`count(last_over_time(%s[%ds])) or vector(0)`, series, seconds)
	found := 0.0
	for found != want && time.Since(sent) < time.Minute {
		time.Sleep(time.Second)
		n := storage.queryAt(t, count, float64(end-1))[0].Value.value
		if n != found {
			t.Logf("%v of %v series after %v", n, want, time.Since(sent).Round(time.Second))
		}
		found = n
	}
	if found != want {
		t.Errorf("queries find %v of %v series", found, want)
	}
	passes := fmt.Sprintf(`last_over_time(windowstat_persecond_pass{job=%q}[999ms])`, job)
	for second := begin; second < end; second++ {
		counted := 0
		for _, p := range instances {
			for resource := range resources {
				counted += p.calls(resource, second).pass
			}
		}
		if got := storage.queryAt(t, "sum("+passes+")", float64(second))[0].Value.value; got != float64(counted) {
			t.Errorf("%v calls in second %d; there were %d", got, second-begin, counted)
		}
		if got := storage.queryAt(t, "count("+passes+")", float64(second))[0].Value.value; got != all {
			t.Errorf("%v samples of second %d, want %d", got, second-begin, all)
		}
	}
}
