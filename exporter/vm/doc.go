// Package vm adds windowstat's metrics to a set of github.com/VictoriaMetrics/metrics, with histograms by vmrange. It links
// neither that library nor client_golang.
//
//	w, err := vm.New(c, vm.Options{})
//	metrics.RegisterMetricsWriter(w.WriteMetrics) // or set.RegisterMetricsWriter
//
// Package push pushes every second to VictoriaMetrics.
//
// # Caveats
//
// The library writes HELP and TYPE only after metrics.ExposeMetadata(true); this package always does. Prometheus cannot read
// vmrange: use package prom for it.
package vm
