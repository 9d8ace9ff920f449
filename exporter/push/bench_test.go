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

// twentySeconds records twenty seconds of the given resources, each with the given number of calls a second.
func twentySeconds(b testing.TB, resources, calls int) (seconds.Stream, *seconds.Line) {
	b.Helper()
	now, random := time.Unix(1_700_000_000, 0), rand.New(rand.NewPCG(1, 1))
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	for range 20 {
		for i := range resources * calls {
			rt := time.Duration(2e7 * math.Exp(random.NormFloat64()/2))
			_, e, err := c.Enter(b.Context(), fmt.Sprint("GET /api/v1/customers/", i%resources),
				collector.StartedAt(now.Add(-rt)))
			if err != nil {
				b.Fatal(err)
			}
			e.Exit(nil)
		}
		now = now.Add(time.Second)
	}
	c.Seal()
	return seconds.NewResources(c, "windowstat", nil), seconds.NewLine(c)
}

// BenchmarkRemoteWrite reports the size of a second of a busy resource in a push, with and without its histogram.
func BenchmarkRemoteWrite(b *testing.B) {
	const resources = 100
	for _, calls := range []int{10, 100, 1000} {
		stream, line := twentySeconds(b, resources, calls)
		for name, span := range map[string]int64{"each second": 1, "every 5 s": 5} {
			for _, histogram := range []seconds.Temporality{seconds.None, seconds.Single} {
				b.Run(fmt.Sprint(calls, " calls, ", name, ", histogram ", histogram == seconds.Single),
					func(b *testing.B) {
						open, enc := line.Open(), RemoteWrite.encoder()
						for b.Loop() {
							enc.Reset()
							stream.Emit(&seconds.Selection{Histogram: histogram}, open-span, open,
								seconds.Limit{Seconds: span}, enc)
							body := enc.Body()
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

// BenchmarkFormats encodes a request of one second of a thousand resources in each format.
func BenchmarkFormats(b *testing.B) {
	stream, line := twentySeconds(b, 1000, 10)
	formats := []Format{RemoteWrite, RemoteWrite2, VictoriaMetrics, OTLP, OTLPDelta}
	for i, name := range []string{"remote_write", "remote_write 2.0", "vm", "otlp", "otlp_delta"} {
		format := formats[i]
		for _, histogram := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s, histogram %t", name, histogram), func(b *testing.B) {
				o := Options{Format: format, Histogram: histogram}
				selection, open, enc := (&sender{opts: o}).selection(0), line.Open(), format.encoder()
				sink := NewLabelled(enc, map[string]string{"job": "shop", "instance": "shop:9719"})
				b.ReportAllocs()
				for b.Loop() {
					enc.Reset()
					stream.Emit(selection, open-1, open, seconds.Limit{Seconds: 1}, sink)
					body := enc.Body()
					n := float64(enc.Samples())
					b.ReportMetric(float64(len(body))/n, "B/sample")
					b.ReportMetric(n, "samples")
				}
			})
		}
	}
}
