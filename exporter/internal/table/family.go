// Package table has the tables of metrics: what /metrics shows of each resource, and what each sealed second carries. The
// ways out walk it, and so do documents, dashboards and their tests.
package table

import "strings"

// Namespace is the default prefix of all names.
const Namespace = "windowstat"

// Type is the type of a metric, in Prometheus's words.
type Type string

// The types of metrics.
const (
	Counter        Type = "counter"
	Gauge          Type = "gauge"
	Histogram      Type = "histogram"
	GaugeHistogram Type = "gaugehistogram" // of one second, not of all time
)

// TypeOf is the type of a metric that is no histogram: names of counters end in _total.
func TypeOf(name string) Type {
	if strings.HasSuffix(name, "_total") {
		return Counter
	}
	return Gauge
}

// Family is a metric as a page or a request shows it.
type Family struct {
	Name string // with namespace
	Type Type
	Help string // as it is; each format escapes it by itself
}
