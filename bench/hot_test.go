package bench_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
)

// The load that makes a resource hot: as many goroutines as a large machine has processors, for the given time. The
// machine may have fewer processors; the benchmark sets GOMAXPROCS.
const (
	processors = 64
	heat       = 200 * time.Millisecond
)

// BenchmarkHot reports the memory of a hot resource, and the time of a call that turns the bucket of the resource.
// Concurrent calls wait for this call.
func BenchmarkHot(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		const resources = 32
		goroutines := onProcessors(b)
		var sum float64
		for b.Loop() {
			c, err := collector.New(collector.Options{})
			if err != nil {
				b.Fatal(err)
			}
			for _, name := range bench.Names(resources) {
				heatUp(goroutines, c.Resource(name))
			}
			with := heap()
			runtime.KeepAlive(c)
			sum += with - heap() // without it, and with what Go keeps of goroutines that waited for a lock, any lock
		}
		b.ReportMetric(sum/float64(b.N)/resources, "B/resource")
		b.ReportMetric(0, "ns/op")
	})
	b.Run("turn", func(b *testing.B) {
		const turns = 2000
		goroutines := onProcessors(b)
		s := newService(b, bench.Traffic{Resources: 1, Seconds: 1, Calls: 1})
		r := s.Collector.Resource(bench.Names(1)[0])
		s.Live()
		heatUp(goroutines, r)
		s.Stop()
		h := hdrhistogram.New(1, time.Minute.Nanoseconds(), 3)
		for b.Loop() {
			for range turns {
				goroutines.do(func(int) { enterAndExit(r) })
				s.Skip(time.Second / 2)
				if err := h.RecordValue(int64(each(1, func() { enterAndExit(r) }))); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(h.ValueAtQuantile(50)), "p50-ns")
		b.ReportMetric(float64(h.ValueAtQuantile(99.9)), "p99.9-ns")
		b.ReportMetric(float64(h.Max()), "max-ns")
	})
}

// onProcessors sets GOMAXPROCS to processors and returns one goroutine for each.
func onProcessors(b *testing.B) *crew {
	b.Helper()
	before := runtime.GOMAXPROCS(processors)
	c := newCrew(processors)
	b.Cleanup(func() {
		c.end()
		runtime.GOMAXPROCS(before)
	})
	return c
}

// heatUp calls a resource from all goroutines.
func heatUp(goroutines *crew, r *collector.Resource) {
	end := bench.Now() + heat
	goroutines.do(func(int) { callFor(end, func(int) { enterAndExit(r) }) })
}

func enterAndExit(r *collector.Resource) {
	e := r.Enter()
	e.Exit(nil)
}
