package bench_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// BenchmarkFirstViewer opens the live page, which nobody had open, of a service whose resources were all busy in each of the
// last three minutes. It reports the processor's time until the viewer has all that the page shows, and by which power of the
// resources it grew from the size before.
func BenchmarkFirstViewer(b *testing.B) {
	var before, beforeCPU float64
	for _, n := range []int{100, 1000, 4000, 10_000} {
		var s *bench.Service
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if s == nil {
				var err error
				if s, err = bench.NewService(bench.Traffic{Resources: n, Seconds: 180, Calls: 2}); err != nil {
					b.Fatal(err)
				}
			}
			var all, first time.Duration
			var size int64
			for b.Loop() {
				page := newLivePage(b, s.Collector)
				began := processorTime(b)
				size = ask(b, page, httptest.NewRequest(http.MethodGet, "/live/seconds", nil))
				all += processorTime(b) - began

				page = newLivePage(b, s.Collector)
				began = processorTime(b)
				ctx, cancel := context.WithCancel(b.Context())
				c := &opening{cancel: func() { first += processorTime(b) - began; cancel() }}
				page.ServeHTTP(c, httptest.NewRequestWithContext(ctx, http.MethodGet, "/live/stream", nil))
			}
			cpu := float64(all.Nanoseconds()) / float64(b.N)
			b.ReportMetric(cpu/1e6, "cpu-ms")
			b.ReportMetric(float64(first.Nanoseconds())/float64(b.N)/1e6, "table-cpu-ms")
			b.ReportMetric(float64(size), "B")
			if before > 0 {
				b.ReportMetric(math.Log(cpu/beforeCPU)/math.Log(float64(n)/before), "exponent")
			}
			if b.N > 0 {
				defer func() { before, beforeCPU = float64(n), cpu }()
			}
		})
	}
}

// opening is a viewer of a stream that leaves when it has the first message.
type opening struct {
	client
	cancel func()
}

func (o *opening) FlushError() error {
	if o.cancel != nil {
		o.cancel()
	}
	o.cancel = nil
	return nil
}

func newLivePage(tb testing.TB, c *collector.Collector) *live.Page {
	tb.Helper()
	page, err := live.New(c, live.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return page
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
