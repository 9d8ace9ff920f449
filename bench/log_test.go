package bench_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

// behind lists the lengths in seconds of an absence before a component catches up.
var behind = []int{60, 900, 3500}

// BenchmarkLogBehind reports the time per row of the metric log for a Writer that catches up after an absence.
func BenchmarkLogBehind(b *testing.B) {
	const resources, writers = 100, 5
	for _, seconds := range behind {
		b.Run(fmt.Sprintf("%ds", seconds), func(b *testing.B) {
			var rows []float64
			for b.Loop() {
				s := newService(b, bench.Traffic{Resources: resources, Calls: 1, History: time.Hour})
				var logs []*metriclog.Writer
				for range writers { // each catches up once
					logs = append(logs, newWriter(b, s))
				}
				advance(b, s, 1)
				for _, w := range logs { // its files exist, as in a log that needs to catch up
					flush(b, w)
				}
				advance(b, s, seconds)
				runtime.GC()
				for _, w := range logs {
					ns := each(1, func() { flush(b, w) })
					rows = append(rows, ns/float64((resources+1)*seconds)) // one is of the total
				}
			}
			b.ReportMetric(median(rows), "ns/row")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkHistoryBehind reports the time per second of a resource that is read from the history.
func BenchmarkHistoryBehind(b *testing.B) {
	const resources = 100
	for _, seconds := range behind {
		b.Run(fmt.Sprintf("%ds", seconds), func(b *testing.B) {
			s := newService(b, bench.Traffic{Resources: resources, Seconds: seconds, Calls: 1, History: time.Hour})
			m := s.Collector.Seal()
			var records []node.MetricNode
			var times []float64
			for b.Loop() {
				for _, r := range m.Resources {
					ns := each(1, func() {
						records = r.View().Node().AppendSeconds(records[:0], m.Open-int64(seconds), m.Open)
					})
					if len(records) != seconds {
						b.Fatalf("%d seconds, want %d", len(records), seconds)
					}
					times = append(times, ns/float64(seconds))
				}
			}
			b.ReportMetric(median(times), "ns/row")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLogSecond writes a sealed second in which 10,000 resources were all in use.
func BenchmarkLogSecond(b *testing.B) {
	s := newService(b, bench.Traffic{Resources: many, Calls: 3})
	w := newWriter(b, s)
	for range 5 { // until buffers and windows have their final size
		advance(b, s, 1)
		flush(b, w)
	}
	var times, allocations []float64
	for b.Loop() {
		for range 5 {
			advance(b, s, 1)
			s.Collector.Seal()
			runtime.GC() // collect the garbage of the calls
			ns, n := cost(func() { flush(b, w) })
			times, allocations = append(times, ns), append(allocations, n)
		}
	}
	b.ReportMetric(median(times), "ns/op")
	b.ReportMetric(median(allocations), "own-allocs/op")
}

// newService is bench.NewService.
func newService(b *testing.B, t bench.Traffic) *bench.Service {
	b.Helper()
	s, err := bench.NewService(t)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// advance runs a service for the given number of seconds.
func advance(b *testing.B, s *bench.Service, seconds int) {
	b.Helper()
	if err := s.Go(seconds); err != nil {
		b.Fatal(err)
	}
}

func newWriter(b *testing.B, s *bench.Service) *metriclog.Writer {
	b.Helper()
	w, err := metriclog.New(s.Collector,
		metriclog.Options{Dir: b.TempDir(), App: "shop", MaxFiles: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.Close() })
	return w
}

func flush(b *testing.B, w *metriclog.Writer) {
	b.Helper()
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
}

// cost returns the nanoseconds and allocations of f.
func cost(f func()) (ns, allocations float64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ns = each(1, f)
	runtime.ReadMemStats(&after)
	return ns, float64(after.Mallocs - before.Mallocs)
}
