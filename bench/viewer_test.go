package bench_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/exporter/live"
)

// BenchmarkFirstViewer reports the processor time until the first viewer of the live page has the table and the last
// second, until it has the three minutes that the page shows at first, and until it has all of the history. The
// resources of the service were all in use in every second of ten minutes.
//
// Of a hundred viewers that connect concurrently, each waits for the others, too. The benchmark reports the longest
// wait, which also depends on the machine.
func BenchmarkFirstViewer(b *testing.B) {
	const seconds, atLeast = 600, 3
	for _, resources := range []int{100, 1000, 4000, many} {
		b.Run(fmt.Sprintf("%d-resources", resources), func(b *testing.B) {
			s := newService(b, bench.Traffic{Resources: resources, Seconds: seconds, Calls: 1})
			runtime.GC()
			var first, shown, whole, crowd []float64
			var size int64
			for b.Loop() {
				for range atLeast {
					page := newLive(b, s)
					began := processorTime(b)
					firstEvent(b, page)
					first = append(first, float64(processorTime(b)-began))
					size = ask(b, page, httptest.NewRequest(http.MethodGet, "/live/seconds?past=180", nil))
					shown = append(shown, float64(processorTime(b)-began))
					ask(b, page, httptest.NewRequest(http.MethodGet, "/live/seconds", nil))
					whole = append(whole, float64(processorTime(b)-began))
					crowd = append(crowd, float64(atOnce(b, newLive(b, s), 100)))
				}
			}
			b.ReportMetric(median(first), "ns/op")
			b.ReportMetric(median(shown), "shown-ns")
			b.ReportMetric(median(whole), "whole-ns")
			b.ReportMetric(median(crowd), "crowd-ns")
			b.ReportMetric(float64(size)/1e6, "MB/page")
		})
	}
}

// firstEvent waits for the first event of a stream, and disconnects.
func firstEvent(tb testing.TB, page http.Handler) {
	tb.Helper()
	ctx, leave := context.WithCancel(tb.Context())
	w := &leaver{ResponseRecorder: httptest.NewRecorder(), leave: leave}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/live/stream", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	if page.ServeHTTP(w, r); w.Code != http.StatusOK || w.Body.Len() < 100 {
		tb.Errorf("status %d, %d bytes", w.Code, w.Body.Len())
	}
}

// atOnce connects viewers concurrently, and returns the longest wait for a first event.
func atOnce(tb testing.TB, page http.Handler, viewers int) (longest time.Duration) {
	tb.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	began := time.Now()
	for range viewers {
		all.Go(func() {
			firstEvent(tb, page)
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(began))
		})
	}
	all.Wait()
	return longest
}

// leaver is a viewer that disconnects after the first event.
type leaver struct {
	*httptest.ResponseRecorder
	leave func()
}

func (w *leaver) Flush() { w.leave() }

// processorTime returns the processor time of the process.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// newLive returns a live page without earlier viewers.
func newLive(b *testing.B, s *bench.Service) *live.Page {
	b.Helper()
	p, err := live.New(s.Collector, live.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return p
}
