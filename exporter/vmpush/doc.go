// Package vmpush sends every sealed second to the import endpoint of VictoriaMetrics, vminsert or vmagent.
//
//	p, err := vmpush.New(c, vmpush.Options{
//		URL:    "http://victoria:8428/api/v1/import/prometheus",
//		Labels: map[string]string{"job": "shop", "instance": hostname},
//	})
//	…
//	stop := p.Start()
//	defer stop() // sends what is left, the open second included
//
// Metrics and values are those of the per-second endpoint of package prom, with [Options.Histogram] also the histogram of
// response times. While the server is away, seconds wait in the Collector's history, ten minutes by default. Older ones are
// dropped and counted; the metric log still has them.
//
// # Caveats
//
// A request whose result is unknown is sent again, and VictoriaMetrics stores its samples twice, unless it has
// -dedup.minScrapeInterval=1ms. The last seconds of a killed process are not sent.
package vmpush
