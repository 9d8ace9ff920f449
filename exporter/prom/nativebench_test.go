package prom_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// histogramTraffic returns a service that has run for 20 seconds with the given resources and calls per second. The
// calls take about 20 ms.
func histogramTraffic(b *testing.B, resources, calls int) *collector.Collector {
	c, now := service(b, collector.Options{})
	random := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		for i := range resources {
			for range calls {
				rt := time.Duration(2e7 * math.Exp(random.NormFloat64()/2))
				_, e, err := c.Enter(
					b.Context(),
					fmt.Sprint("GET /api/v1/customers/", i),
					collector.StartedAt(now.Add(-rt)),
				)
				if err != nil {
					b.Fatal(err)
				}
				e.Exit(nil)
			}
		}
		*now = now.Add(time.Second)
	}
	return c
}

// BenchmarkHistogramsOfSeconds reports the cost of a second of a busy resource on a page of 15 seconds, with and
// without its histogram.
func BenchmarkHistogramsOfSeconds(b *testing.B) {
	const resources, span = 100, 15
	for _, calls := range []int{10, 100, 1000} {
		c := histogramTraffic(b, resources, calls)
		page, err := prom.NewSeconds(c, prom.SecondsOptions{})
		if err != nil {
			b.Fatal(err)
		}
		for _, histogram := range []string{"", "&histogram=classic", "&histogram=native"} {
			b.Run(fmt.Sprint(calls, " calls/page", histogram), func(b *testing.B) {
				r := httptest.NewRequest("GET", fmt.Sprintf("/?window=%ds%s", span, histogram), nil)
				r.Header.Set("Accept-Encoding", "gzip")
				if histogram == "&histogram=native" {
					r.Header.Set("Accept", wantsProtobuf)
				}
				for b.Loop() {
					rec := httptest.NewRecorder()
					page.ServeHTTP(rec, r)
					compressed := rec.Body.Len()
					z, err := gzip.NewReader(rec.Body)
					if err != nil {
						b.Fatal(err)
					}
					n, err := io.Copy(io.Discard, z)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(n)/resources/span, "B/second")
					b.ReportMetric(float64(compressed)/resources/span, "gzip-B/second")
				}
			})
		}
	}
}
