// Package remote sends every sealed second to a server by Prometheus remote write: to Prometheus with
// --web.enable-remote-write-receiver, VictoriaMetrics, vmagent, Mimir, Thanos and others.
//
//	p, err := remote.New(c, remote.Options{
//		URL:    "http://prometheus:9090/api/v1/write",
//		Labels: map[string]string{"job": "shop", "instance": hostname},
//	})
//	…
//	stop := p.Start()
//	defer stop() // sends what is left, the open second included
//
// It is for processes that cannot be scraped: short jobs, services behind a firewall. Metrics and values are those of the
// per-second endpoint of package prom, with [Options.Histogram] also the native histogram of the response times of each second.
//
// Each second is sent once and in order. A request whose result is unknown (5xx, a timeout, a broken connection) is sent again
// unchanged, until the server accepts or rejects it. While a server is away, seconds wait in the Collector's history, ten
// minutes by default. Older ones are dropped and counted; the metric log still has them.
//
// # Caveats
//
// Samples that a server rejects are not sent again; windowstat_push_refused_samples_total counts them, and it is logged. If it
// rejects a request that was sent before as a duplicate or out of order, the samples arrived then, or another process has
// written to the same series: nobody can tell, and windowstat_push_unconfirmed_samples_total counts them, not
// windowstat_push_samples_total. Likewise for a request that got 500 thirty-one times, and for the last one of a process if it
// got no response.
//
// VictoriaMetrics stores a request twice that is sent twice, unless it has -dedup.minScrapeInterval=1ms;
// windowstat_push_resent_samples_total counts these samples.
//
// The last seconds of a killed process are not sent, not even by the next one: only the metric log has them.
package remote
