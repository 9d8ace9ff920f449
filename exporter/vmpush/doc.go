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
// Metrics and values are those of the per-second page, see package prom; the histogram of response times is sent with
// [Options.Histogram]. While the server is away seconds wait in the Collector's history, ten minutes by default; older ones
// are dropped, counted, and still in the metric log.
//
// # Caveats
//
// What is pushed again because it is unknown whether it arrived is stored twice, with the same values;
// -dedup.minScrapeInterval=1ms makes it one. A process that is killed has not sent its last seconds.
package vmpush
