package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

const resources = 10_000

// BenchmarkPage serves the page for ten thousand resources, beside client_golang with as many series of its own.
func BenchmarkPage(b *testing.B) {
	c, now := service(b, collector.Options{})
	for i := range resources {
		r := c.Resource(fmt.Sprint("GET /resource/", i))
		for _, rt := range []time.Duration{ms, 7 * ms, 30 * ms} {
			e := r.Enter()
			*now = now.Add(rt / 1000)
			e.Exit(nil)
		}
	}
	own, err := prom.Handler(c, prom.Options{})
	if err != nil {
		b.Fatal(err)
	}
	direct := prometheus.NewRegistry()
	for _, name := range []string{"pass", "block", "complete", "exception", "occupied_pass"} {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name + "_total", Help: "x"}, []string{"resource"})
		fill(direct, v, func(r string) { v.WithLabelValues(r).Add(3) })
	}
	for _, name := range []string{"in_flight", "pass_qps", "block_qps", "complete_qps", "exception_qps", "peak"} {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "x"}, []string{"resource"})
		fill(direct, v, func(r string) { v.WithLabelValues(r).Set(3) })
	}
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "rt_seconds", Help: "x",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, NativeHistogramBucketFactor: 1.1,
	}, []string{"resource"})
	fill(direct, v, func(r string) {
		for _, rt := range []float64{.001, .007, .03} {
			v.WithLabelValues(r).Observe(rt)
		}
	})
	for _, format := range []string{"text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0"} {
		for name, h := range map[string]http.Handler{
			"windowstat":    own,
			"client_golang": promhttp.HandlerFor(direct, promhttp.HandlerOpts{EnableOpenMetrics: true}),
		} {
			b.Run(format[:8]+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r := httptest.NewRequest("GET", "/metrics", nil)
					r.Header.Set("Accept", format)
					h.ServeHTTP(nothing{}, r)
				}
			})
		}
	}
}

func fill(r *prometheus.Registry, v prometheus.Collector, set func(string)) {
	r.MustRegister(v)
	for i := range resources {
		set(fmt.Sprint("GET /resource/", i))
	}
}

// nothing is a client that reads everything and keeps nothing.
type nothing struct{}

func (nothing) Header() http.Header         { return http.Header{} }
func (nothing) Write(b []byte) (int, error) { return len(b), nil }
func (nothing) WriteHeader(int)             {}
