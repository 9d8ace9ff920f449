// Package remote sends every sealed second to a server by Prometheus remote write: to Prometheus with
// --web.enable-remote-write-receiver, VictoriaMetrics, vmagent, Mimir, Thanos and what else takes it.
//
//	p, err := remote.New(c, remote.Options{
//		URL:    "http://prometheus:9090/api/v1/write",
//		Labels: map[string]string{"job": "shop", "instance": hostname},
//	})
//	…
//	stop := p.Start()
//	defer stop() // sends what is left, the open second included
//
// It is for what cannot be scraped: jobs that end soon, services behind a firewall. Metrics and values are those of the
// per-second page, see package prom; the histogram of response times is not sent.
//
// Each second is sent once and in order. Where it is unknown whether a request arrived, the same request is sent again: Prometheus refuses it then, which counts as success, and VictoriaMetrics stores the same samples twice,
// which -dedup.minScrapeInterval=1ms makes one. While a server is away seconds wait in the Collector's history, ten
// minutes by default; older ones are dropped, counted, and still in the metric log.
//
// # Caveats
//
// A process that is killed has not sent its last seconds, and the next one does not send them: they are in the metric
// log. What a server refuses with 400, other than what it has, it will never get; windowstat_push_refused_samples_total
// counts it.
package remote
