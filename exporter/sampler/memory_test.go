package sampler_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// A series uses little more than eight bytes per second, including all its data. A removed series uses no memory.
func TestMemory(t *testing.T) {
	const each, history = 10, 600
	families := 500
	if testing.Short() {
		families = 100
	}
	var list, none []*dto.MetricFamily
	for i := range families {
		f := &dto.MetricFamily{
			Name: proto.String(fmt.Sprintf("http_requests_%d_total", i)),
			Help: proto.String("Requests."),
		}
		for k := range each {
			f.Metric = append(f.Metric, &dto.Metric{
				Label:   []*dto.LabelPair{{Name: proto.String("code"), Value: proto.String(fmt.Sprint(k))}},
				Counter: &dto.Counter{Value: proto.Float64(0)},
			})
		}
		list = append(list, f)
	}
	gathered := none
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sampler.New(c, sampler.Options{
		Gatherer: prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return gathered, nil }),
		MaxDelay: 500 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	sample := func(n int) {
		for i := range n {
			for _, f := range gathered {
				for _, m := range f.Metric {
					*m.Counter.Value += float64(i)
				}
			}
			now = now.Add(time.Second)
			s.Sample()
		}
	}
	sample(10)
	before := heap()
	gathered = list
	sample(2 * history)
	if n := own(c); n["missed_seconds_total"] != 0 || n["series"] != float64(families*each) {
		t.Fatalf("%v", n)
	}
	bytes := heap() - before
	perSecond := bytes / float64(families*each) / history
	t.Logf("%.0f bytes for a series, %.2f for each of its seconds", bytes/float64(families*each), perSecond)
	if most := 8 * 1.1; perSecond > most {
		t.Errorf("%.2f bytes for each second of a series, want at most %v", perSecond, most)
	}
	gathered = none
	sample(history + 2)
	if left := heap() - before; left > 100_000 {
		t.Errorf("%.0f bytes remain of removed series", left)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(list)
}

// heap returns the number of allocated bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
