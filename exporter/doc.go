// Package exporter assembles, serves and shuts down a Collector with all exporters that a service needs. At shutdown it
// writes and sends the last second.
//
//	x, err := exporter.New(exporter.Options{App: "shop", Log: metriclog.Options{Dir: "/var/log/shop"}})
//	…
//	go http.ListenAndServe(":8080", httpstat.Mux(x.Collector, mux))
//	err = x.ListenAndServe(ctx, ":9719") // /metrics, /metrics/seconds, /live/
//
// The parts are the packages below. Each also works alone: prom has the pages for Prometheus, metriclog the metric log,
// live the page for a browser, push sends every second to servers, sampler samples the metrics of client_golang, vm
// writes sets of VictoriaMetrics/metrics, and verify compares a database with the log and fills its gaps. A program
// that imports only one of them stays small; this package links all of them except vm.
//
// # Caveats
//
// The pages have no authentication; docs/security.md lists the data that they reveal. The handlers also limit the
// resources of a client during a response if a service mounts them on its own mux and server. Such a server must set
// ReadHeaderTimeout and IdleTimeout, or be [Exporter.Server]. net/http/pprof is on no mux unless the service mounts it.
//
// Importing this package registers nothing, but client_golang does: its Go and process collectors with the default
// registry and, through expvar, GET /debug/vars with the default mux.
//
// On a file system without flock, only the port keeps a second process with the same options from writing to the same
// log. Listen first, then pass the listener to [Exporter.Serve].
package exporter
