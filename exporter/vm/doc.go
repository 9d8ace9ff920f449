// Package vm shows statistics to VictoriaMetrics, for services that use github.com/VictoriaMetrics/metrics or push. It
// needs neither that library nor client_golang.
//
// On the page of a set of that library, with histograms by vmrange:
//
//	w, err := vm.New(c, vm.Options{})
//	metrics.RegisterMetricsWriter(w.WriteMetrics) // or set.RegisterMetricsWriter
//
// Every sealed second, pushed to the import endpoint of VictoriaMetrics, vminsert or vmagent:
//
//	p, err := vm.NewPusher(c, vm.PushOptions{
//		URL:    "http://victoria:8428/api/v1/import/prometheus",
//		Labels: map[string]string{"job": "shop", "instance": hostname},
//	})
//	…
//	stop := exporter.Start(p.Run)
//	defer stop() // sends what is left, the open second included
//
// # Caveats
//
// What is pushed again because nobody knows whether it arrived is stored twice, with the same values;
// -dedup.minScrapeInterval=1ms makes it one. The library writes families without help and type unless
// metrics.ExposeMetadata was called; this writer always does. A Prometheus cannot read vmrange: for both, take package
// prom.
package vm
