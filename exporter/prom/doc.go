// Package prom exposes statistics to Prometheus and VictoriaMetrics.
//
//	handler, err := prom.Handler(c, prom.Options{})
//	http.Handle("/metrics", handler)
//
// [New] makes a prometheus.Collector for a registry of the service's own. Metrics are made when they are scraped; nothing is
// kept between scrapes, and recording costs no more.
//
// [NewSeconds] makes the per-second endpoint: every sealed second, with its own timestamp, for scrapers that need all of them.
//
// All values of one resource in one scrape were read at one instant: the histogram's count equals complete_total. With
// [Options].By this does not hold: calls of a retired origin stay in the resource's histogram. Different resources are
// read one after the other.
//
// # Caveats
//
// The QPS gauges of /metrics show the last complete second only. At a scrape interval of 15 seconds the other fourteen are on
// the per-second endpoint alone. Counters miss nothing.
package prom
