package sampler_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// The length of a queue, a gauge of client_golang, second by second on the per-second endpoint.
func Example() {
	// The clock of the example. Omit Now to use the real clock.
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	registry, length := prometheus.NewRegistry(), prometheus.NewGauge(prometheus.GaugeOpts{Name: "queue_length"})
	registry.MustRegister(length)
	s, err := sampler.New(c, sampler.Options{Gatherer: registry})
	if err != nil {
		panic(err)
	}
	endpoint, err := prom.NewSeconds(c, prom.SecondsOptions{Sampler: s})
	if err != nil {
		panic(err)
	}
	for _, n := range []float64{3, 7} {
		length.Set(n)
		now = now.Add(time.Second)
		s.Sample() // Run does it at the end of each second
	}
	rec := httptest.NewRecorder()
	endpoint.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics/seconds?window=10s", nil))
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, "persecond_queue_length ") {
			fmt.Print(line)
		}
	}
	// Output:
	// persecond_queue_length 3 1767323045000
	// persecond_queue_length 7 1767323046000
}
