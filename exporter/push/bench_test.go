package push

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// BenchmarkRemoteWrite reports what a second of a busy resource takes in a push, with and without its histogram.
func BenchmarkRemoteWrite(b *testing.B) {
	const resources = 100
	for _, calls := range []int{10, 100, 1000} {
		now, random := time.Unix(1_700_000_000, 0), rand.New(rand.NewPCG(1, 1))
		c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
		if err != nil {
			b.Fatal(err)
		}
		for range 20 {
			for i := range resources * calls {
				rt := time.Duration(2e7 * math.Exp(random.NormFloat64()/2))
				_, e, err := c.Enter(b.Context(), fmt.Sprint("GET /api/v1/customers/", i%resources), collector.StartedAt(now.Add(-rt)))
				if err != nil {
					b.Fatal(err)
				}
				e.Exit(nil)
			}
			now = now.Add(time.Second)
		}
		c.Seal()
		stream, line := seconds.NewResources(c, "windowstat", nil), seconds.NewLine(c)
		for name, span := range map[string]int64{"each second": 1, "every 5 s": 5} {
			for _, histogram := range []seconds.Temporality{seconds.None, seconds.Single} {
				b.Run(fmt.Sprint(calls, " calls, ", name, ", histogram ", histogram == seconds.Single), func(b *testing.B) {
					open, enc := line.Open(), RemoteWrite.encoder()
					for b.Loop() {
						enc.Reset()
						stream.Emit(&seconds.Selection{Histogram: histogram}, open-span, open, seconds.Limit{Seconds: span}, enc)
						body, err := enc.Body()
						if err != nil {
							b.Fatal(err)
						}
						raw, err := snappy.DecodedLen(body)
						if err != nil {
							b.Fatal(err)
						}
						n := float64(resources * span)
						b.ReportMetric(float64(raw)/n, "B/second")
						b.ReportMetric(float64(len(body))/n, "snappy-B/second")
						b.ReportMetric(float64(enc.Samples())/n, "samples/second")
					}
				})
			}
		}
	}
}
