// Package vm adds windowstat's metrics to a set of github.com/VictoriaMetrics/metrics, with histograms by vmrange. It
// links neither that library nor client_golang.
//
//	w, err := vm.New(c, vm.Options{})
//	metrics.RegisterMetricsWriter(w.WriteMetrics) // or set.RegisterMetricsWriter
//
// Package push pushes every second to VictoriaMetrics.
//
// # Caveats
//
// The library writes HELP and TYPE only after metrics.ExposeMetadata(true); this package always does. Prometheus cannot
// read vmrange: use package prom for it.
package vm

import (
	"io"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// Options configures a [Writer]. The zero value is a sensible default.
type Options struct {
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
	// By adds the label "origin" or "entrance" to the metrics of resources, except to the histogram and to
	// windowstat_block_total; see the field By of prom.Options. Empty means no label.
	By By
}

// By is an additional label of the metrics of resources. The zero value adds no label.
type By = gather.By

// The additional labels.
const (
	ByOrigin   = gather.ByOrigin   // who calls
	ByEntrance = gather.ByEntrance // where the call chain enters
)

// Writer writes the metrics of a Collector as text, for VictoriaMetrics. Create it with [New]. A Writer is safe for
// concurrent use.
type Writer struct {
	metrics *gather.Metrics
	pages   text.Pages
}

// New returns a Writer. The error names every invalid option.
func New(c *collector.Collector, o Options) (*Writer, error) {
	if err := gather.Options(o).Check("vm"); err != nil {
		return nil, err
	}
	return &Writer{metrics: gather.New(c, gather.Options(o))}, nil
}

// WriteMetrics writes all current metrics. It ignores errors of the writer, because metrics.RegisterMetricsWriter has
// no place for them.
func (w *Writer) WriteMetrics(out io.Writer) {
	page := w.metrics.Page(&w.pages, text.VictoriaMetrics)
	defer w.pages.Put(page)
	_, _ = page.WriteTo(out)
}
