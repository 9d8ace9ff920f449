package sampler_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// registry returns a registry with n counters.
func registry(n int) *prometheus.Registry {
	r := prometheus.NewRegistry()
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "http_requests_total", Help: "x"},
		[]string{"path", "code"})
	r.MustRegister(v)
	for i := range n {
		v.WithLabelValues(fmt.Sprint("/resource/", i), "200").Inc()
	}
	return r
}

// BenchmarkSecond measures a second of a Sampler. For comparison it measures a scrape of promhttp: a server would need
// one each second to get the same data.
func BenchmarkSecond(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 50_000} {
		r := registry(n)
		b.Run(fmt.Sprint("sampler/", n), func(b *testing.B) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
			if err != nil {
				b.Fatal(err)
			}
			s, err := sampler.New(c, sampler.Options{
				Gatherer:  r,
				MaxSeries: n,
				MaxDelay:  500 * time.Millisecond,
				Logger:    slog.New(slog.DiscardHandler),
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second)
				s.Sample()
			}
		})
		b.Run(fmt.Sprint("promhttp/", n), func(b *testing.B) {
			h := promhttp.HandlerFor(r, promhttp.HandlerOpts{})
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest("GET", "/metrics", nil)
				req.Header.Set("Accept-Encoding", "gzip")
				rec := httptest.NewRecorder()
				rec.Body = nil
				h.ServeHTTP(rec, req)
				_, _ = io.Discard.Write(nil)
			}
		})
	}
}
