// Package vm shows statistics to VictoriaMetrics, for services that use github.com/VictoriaMetrics/metrics: on the page of
// a set of that library, with histograms by vmrange. It needs neither that library nor client_golang.
//
//	w, err := vm.New(c, vm.Options{})
//	metrics.RegisterMetricsWriter(w.WriteMetrics) // or set.RegisterMetricsWriter
//
// Package vmpush pushes every second.
//
// # Caveats
//
// The library writes families without help and type unless metrics.ExposeMetadata was called; this writer always does. A
// Prometheus cannot read vmrange: for both, take package prom.
package vm
