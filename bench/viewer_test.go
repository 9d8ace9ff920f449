package bench_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/exporter/live"
)

// BenchmarkFirstViewer reports how long the first viewer of the live page waits for the last three minutes of a service whose
// resources were all in use in every second.
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
					times = append(times, each(1, func() { size = ask(b, page, httptest.NewRequest(http.MethodGet, "/live/seconds", nil)) }))
				}
			}
			b.ReportMetric(median(times), "ns/op")
			b.ReportMetric(float64(size)/1e6, "MB/page")
		})
	}
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
