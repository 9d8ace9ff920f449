package bench_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/exporter/live"
)

// BenchmarkFirstViewer reports the processor's time for the first viewer of the live page, with the last three minutes of a
// service whose resources were all in use in every second.
func BenchmarkFirstViewer(b *testing.B) {
	const seconds, atLeast = 180, 3
	for _, resources := range []int{100, 1000, 4000, many} {
		b.Run(fmt.Sprintf("%d-resources", resources), func(b *testing.B) {
			s := newService(b, bench.Traffic{Resources: resources, Seconds: seconds, Calls: 1})
			runtime.GC()
			var times []float64
			var size int64
			for b.Loop() {
				for range atLeast {
					page := newLive(b, s)
					began := processorTime(b)
					size = ask(b, page, httptest.NewRequest(http.MethodGet, "/live/seconds", nil))
					times = append(times, float64(processorTime(b)-began))
				}
			}
			b.ReportMetric(median(times), "ns/op")
			b.ReportMetric(float64(size)/1e6, "MB/page")
		})
	}
}

// processorTime is how much processor time the process has used.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// newLive makes a live page that nobody has seen.
func newLive(b *testing.B, s *bench.Service) *live.Page {
	b.Helper()
	p, err := live.New(s.Collector, live.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return p
}
