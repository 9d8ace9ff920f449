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
// the response times of each second. While the server is away, seconds wait in the Collector's history, ten minutes by default.
// Older ones are dropped and counted, unless there is [Options.Log]: with it they are read from the metric log, and so are the
// seconds that earlier processes, killed or not, have logged and not sent. They have the metrics of the log. Package remote tells
// how.
//
// # Caveats
//
// A request whose result is unknown (5xx, a timeout, a broken connection) is sent again, and VictoriaMetrics stores its samples
// twice, unless it has -dedup.minScrapeInterval=1ms; windowstat_push_resent_samples_total counts them. A request that got 500
// thirty-one times is given up, and so is the last one of a process if it got no response: they may have arrived, and
// windowstat_push_unconfirmed_samples_total counts them. Samples that are rejected are counted by
// windowstat_push_refused_samples_total. Without a log the last seconds of a killed process are not sent; with one, what it was
// about to send is sent again by the next process.
package vmpush
