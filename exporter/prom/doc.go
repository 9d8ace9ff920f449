// Package prom shows statistics to Prometheus, through client_golang.
//
//	handler, err := prom.Handler(c, prom.Options{})
//	http.Handle("/metrics", handler)
//
// or, in a registry of one's own, [New] makes a prometheus.Collector. Metrics are made when somebody scrapes; nothing
// is kept between scrapes and recording costs nothing more.
//
// All values of one resource in one scrape belong to one moment: the histogram's count is complete_total. (With
// [Options].By they are apart: what was counted for an origin that is retired stays in the resource's histogram.) Between
// resources the moments differ by the time it takes to read them. The histogram is native (schema 3) and classic in
// one metric; a server takes what it can.
//
// [NewSeconds] makes a page of every sealed second, for servers that are to have them all.
//
// # Caveats
//
// The QPS gauges show the last complete second only: at a scrape interval of 15 seconds, fourteen of fifteen seconds
// are not among them, but on the page of seconds. The counters miss nothing.
package prom
