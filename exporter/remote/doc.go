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
// per-second endpoint of package prom, without the histogram of response times.
//
// Each second is sent once and in order. A request whose result is unknown is sent again unchanged: Prometheus rejects the
// duplicate, which counts as success, and VictoriaMetrics stores the same samples twice, unless it has
// -dedup.minScrapeInterval=1ms. While a server is away, seconds wait in the Collector's history, ten minutes by default. Older
// ones are dropped and counted; the metric log still has them.
//
// # Caveats
//
// The last seconds of a killed process are not sent, not even by the next one: only the metric log has them. Samples that a
// server rejects with 400, other than duplicates, are not sent again; windowstat_push_refused_samples_total counts them.
package remote
