// Package prom exposes statistics to Prometheus and VictoriaMetrics.
//
//	handler, err := prom.Handler(c, prom.Options{})
//	http.Handle("/metrics", handler)
//
// [New] returns a prometheus.Collector for a registry of the service. Metrics are created when they are scraped.
// Nothing is stored between scrapes, and recording costs nothing extra.
//
// [NewSeconds] returns the per-second endpoint: every sealed second, with its timestamp, for scrapers that need all of
// them.
//
// All values of one resource in a scrape were read at one instant, so the count of its histogram equals complete_total.
// With [Options].By they differ: calls of a retired origin stay in the histogram of the resource. Different resources
// are read one after the other.
//
// # Caveats
//
// The QPS gauges of /metrics show only the last complete second. At a scrape interval of 15 seconds, only the
// per-second endpoint has the other fourteen. Counters miss nothing.
package prom
