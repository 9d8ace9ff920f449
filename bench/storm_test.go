package bench_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
)

// BenchmarkStorm reports the time of Enter and Exit in one goroutine, one call after the other, while other goroutines
// request pages as fast as they can. It calls one resource, which is contended, and 1,000 resources at random.
func BenchmarkStorm(b *testing.B) {
	const slot = time.Second
	for _, n := range []int{1, 1000} {
		s, err := bench.NewService(traffic(n))
		if err != nil {
			b.Fatal(err)
		}
		s.Live()
		var resources []*collector.Resource
		for _, name := range bench.Names(n) {
			resources = append(resources, s.Collector.Resource(name))
		}
		for _, storm := range bench.Storms() {
			b.Run(fmt.Sprintf("%d/%s", n, storm.Name), func(b *testing.B) {
				pages, err := storm.New(s)
				if err != nil {
					b.Fatal(err)
				}
				h := hdrhistogram.New(1, time.Minute.Nanoseconds(), 3)
				var scrapes int64
				start := bench.Now()
				for b.Loop() {
					stop := bench.Rage(pages)
					recordFor(b, slot, resources, h)
					scrapes += stop()
				}
				took := (bench.Now() - start).Seconds()
				b.ReportMetric(0, "ns/op")
				for _, q := range []float64{50, 99, 99.9, 99.99} {
					b.ReportMetric(float64(h.ValueAtQuantile(q)), fmt.Sprintf("p%v-ns", q))
				}
				b.ReportMetric(float64(h.Max()), "max-ns")
				b.ReportMetric(float64(h.TotalCount())/took, "calls/s")
				b.ReportMetric(float64(scrapes)/took, "scrapes/s")
			})
		}
	}
}

// recordFor makes calls for the given time, and records the duration of each.
func recordFor(b *testing.B, length time.Duration, resources []*collector.Resource, h *hdrhistogram.Histogram) {
	b.Helper()
	picks := bench.Picks(len(resources))
	i := 0
	for end := bench.Now() + length; ; i++ {
		r := resources[picks[i&(len(picks)-1)]]
		began := bench.Now()
		e := r.Enter()
		e.Exit(nil)
		now := bench.Now()
		if err := h.RecordValue(int64(now - began)); err != nil {
			b.Fatal(err)
		}
		if now >= end {
			return
		}
	}
}
