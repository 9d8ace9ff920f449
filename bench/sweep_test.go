package bench_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// BenchmarkSweep reports the longest Seal of a minute in which sweeps check 50,000 leaves for retirement. In one case
// the sweeps retire no leaf, in the other case all of them. The seconds of the leaves are sealed before, so the median
// Seal is the cost without the sweep.
func BenchmarkSweep(b *testing.B) {
	const seconds = 60 // a Seal retires a thousand leaves at most
	for _, c := range []struct {
		name string
		idle time.Duration
		left int // leaves
	}{{"50000-kept", 0, 5 * many}, {"50000-retired", 2 * time.Hour, 0}} {
		b.Run(c.name, func(b *testing.B) {
			var medians, longest []float64
			for b.Loop() {
				// And one leaf without an origin.
				s := newService(b, bench.Traffic{Resources: many, Seconds: 2, Calls: 1, Origins: 4})
				resources := s.Collector.Seal().Resources
				if n := s.Collector.Health().Leaves; n != 5*many {
					b.Fatalf("%d leaves, want %d", n, 5*many)
				}
				s.Skip(c.idle)
				var seals []float64
				for range seconds {
					s.Skip(time.Second)
					for _, r := range resources {
						r.PassQPS() // turns buckets that have ended
					}
					seals = append(seals, each(1, func() { s.Collector.Seal() }))
				}
				if n := s.Collector.Health().Leaves; n != c.left {
					b.Fatalf("%d leaves are left, want %d", n, c.left)
				}
				medians, longest = append(medians, median(seals)), append(longest, slices.Max(seals))
			}
			b.ReportMetric(median(medians), "ns/op")
			b.ReportMetric(median(longest), "max-ns")
		})
	}
}

// BenchmarkScrape counts the readings of the clock for a scrape of the per-second page that has one second more than
// the previous scrape: one reading for each time that all resources are sealed.
func BenchmarkScrape(b *testing.B) {
	var readings atomic.Int64
	now := time.Unix(1_700_000_000, 0)
	c, err := collector.New(collector.Options{Now: func() time.Time {
		readings.Add(1)
		return now
	}})
	if err != nil {
		b.Fatal(err)
	}
	r := c.Resource("one")
	second := func() {
		e := r.Enter()
		e.Exit(nil)
		now = now.Add(time.Second)
		r.PassQPS() // names the second
	}
	for range bench.SecondsShown {
		second()
	}
	page, err := prom.NewSeconds(c, prom.SecondsOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, query := range []struct{ name, text string }{{"window", bench.SecondsQuery}, {"cursor", "cursor=bench"}} {
		b.Run("seconds/"+query.name, func(b *testing.B) {
			r := request("/metrics/seconds?"+query.text, plainText)
			ask(b, page, r)
			var read int64
			for b.Loop() {
				second()
				before := readings.Load()
				ask(b, page, r)
				read = readings.Load() - before
			}
			b.ReportMetric(float64(read), "readings")
			b.ReportMetric(0, "ns/op")
		})
	}
}
