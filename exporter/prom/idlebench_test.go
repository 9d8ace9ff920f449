package prom_test

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// BenchmarkSecondsOfIdleResources serves 15 seconds of a thousand resources that are busy, called periodically, or idle
// for a long time.
func BenchmarkSecondsOfIdleResources(b *testing.B) {
	const resources, minutes = 1000, 2
	for _, bc := range []struct {
		name  string
		calls func(second int) bool
	}{
		{"busy", func(int) bool { return true }},
		{"in one of ten seconds", func(second int) bool { return second%10 == 0 }},
		{"idle", func(second int) bool { return second == 0 }},
	} {
		for _, query := range []string{"window=15s", "window=15s&histogram=classic"} {
			b.Run(bc.name+"/"+query, func(b *testing.B) {
				c, now := service(b, collector.Options{})
				for second := range minutes * 60 {
					at := *now
					for i := range resources {
						if bc.calls(second) {
							e := c.Resource(fmt.Sprint("GET /api/v1/customers/", i)).Enter()
							*now = now.Add(10 * time.Microsecond)
							e.Exit(nil)
						}
					}
					*now = at.Add(time.Second)
				}
				page, err := prom.NewSeconds(c, prom.SecondsOptions{MaxSamples: 10_000_000, MaxBytes: 1 << 30})
				if err != nil {
					b.Fatal(err)
				}
				r := httptest.NewRequest("GET", "/?"+query, nil)
				for b.Loop() {
					rec := httptest.NewRecorder()
					page.ServeHTTP(rec, r)
					b.ReportMetric(float64(rec.Body.Len())/1e6, "MB/page")
				}
			})
		}
	}
}
