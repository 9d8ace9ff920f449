// Package exporter is the front door: a Collector with every way out that a service needs, made in the right order, served,
// and ended so that the last second is written and sent.
//
//	x, err := exporter.New(exporter.Options{App: "shop", Log: metriclog.Options{Dir: "/var/log/shop"}})
//	…
//	go http.ListenAndServe(":8080", httpstat.Mux(x.Collector, mux))
//	err = x.ListenAndServe(ctx, ":9719") // /metrics, /metrics/seconds, /live/
//
// Its parts are the packages below, and each works alone: prom has the pages for Prometheus, metriclog the log, live the
// page for a browser, push sends every second to servers, sampler has what a service counts with client_golang, vm is for sets of
// VictoriaMetrics/metrics, and verify compares a database with the log and fills its gaps. A program that imports one
// of them alone stays small; this package links all but vm.
//
// # Caveats
//
// The pages have no authentication; docs/security.md says what they reveal. With a mux and a server of one's own the handlers
// bound what a client can hold while they respond, and the server has to set ReadHeaderTimeout and IdleTimeout, or be
// [Exporter.Server]; net/http/pprof is on no mux but the one that it is mounted on.
//
// Importing it registers nothing, but client_golang does: its Go and process collectors with the default registry, and, by expvar,
// GET /debug/vars with the default mux.
//
// Where a file system has no flock, nothing but the port keeps a second process with the same options away from the log:
// listen first, and give the listener to [Exporter.Serve].
package exporter
