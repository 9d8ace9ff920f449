// Package table defines the metrics of /metrics and of sealed seconds, whose numbers no longer change. The exporters,
// the documentation, the dashboards and their tests iterate over its tables.
//
// A row defines a metric once: its name without namespace, its unit, its HELP, how to read it, and when it is absent. A
// new count becomes a column of package node and a row here; pages, pushes, the live page and the terminal view then
// include it, and docs/metrics.md is generated from it.
//
// [Metrics] are the rows of /metrics, whose values are as of the scrape. [Seconds] are the rows of single seconds. All
// inbound traffic has separate rows, [Inbound] and [InboundSeconds], with separate names and without the label
// resource. As a resource, it would be counted twice by every sum over resources.
package table

import (
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Metric is a metric of /metrics, for each resource or for all inbound traffic. One of Value, ByCode and Each reads it;
// all three are nil for a histogram.
type Metric struct {
	// Name without namespace.
	Name string
	Type Type
	// Unit is the base unit, the end of the name before _total, or empty for plain numbers.
	Unit string
	Help string
	// Labels are the label names, in order.
	Labels []string
	// Value reads a metric from a snapshot of the resource, or of one of its origins or entrances.
	Value func(*Reading) float64
	// ByCode marks a metric with the additional label code. Its values are the Codes of the Reading; the first one has
	// no label code.
	ByCode bool
	// Each calls yield for each series of the resource, with the value of the label next to resource (empty without
	// such a label) and the number. There may be no series.
	Each func(r *collector.Resource, yield func(string, int64) bool)
}

var resource = []string{"resource"}

// Names of metrics with special treatment in code.
const (
	Blocks   = "block_total"
	complete = "complete"
)

// Reading is a snapshot of a view, for [Metric].Value.
type Reading struct {
	node.Snapshot
	Codes node.Codes      // Total.Complete by code, read in the same instant
	total node.MetricNode // Total, for the columns
}

// Set stores a snapshot in the Reading.
func (r *Reading) Set(s node.Snapshot) { r.Snapshot, r.total.Counts = s, s.Total }

// Metrics returns the metrics of resources in the order of the documentation. The caller owns the slice.
func Metrics() []Metric {
	all := append(ofView("", resource), []Metric{
		{
			Name: "limit_qps", Type: Gauge, Labels: resource,
			Help: "Lowest QPS limit of the resource that covers all origins together. Absent without such a limit.",
			Each: limit(collector.QPS),
		},
		{
			Name: "limit_concurrency", Type: Gauge, Labels: resource,
			Help: "Lowest concurrency limit of the resource that covers all origins together. " +
				"Absent without such a limit.",
			Each: limit(collector.Concurrency),
		},
	}...)
	at := func(name string) int { return slices.IndexFunc(all, func(m Metric) bool { return m.Name == name }) }
	block := &all[at(Blocks)]
	block.Labels, block.Value = []string{"resource", "reason"}, nil
	block.Each = func(r *collector.Resource, yield func(string, int64) bool) { r.Blocks()(yield) }
	block.Help = "Calls refused, by reason: the limit that refused them, or the reason passed to Block."
	all = slices.Insert(all, at(Blocks)+1, Metric{
		Name: "dry_run_block_total", Type: Counter, Labels: []string{"resource", "reason"},
		Help: "Admitted calls that a dry run of a limit would have refused, by limit. Absent without dry runs.",
		Each: func(r *collector.Resource, yield func(string, int64) bool) {
			for reason, v := range r.DryRuns() {
				if !yield(reason, v.Snapshot(nil).Total.Block) {
					return
				}
			}
		},
	})
	return slices.Insert(all, at("exception_total")+1, Metric{
		Name: "exception_class_total", Type: Counter, Labels: []string{"resource", "class"},
		Help: "Calls that ended with an error, by class. Absent unless classes are configured.",
		Each: func(r *collector.Resource, yield func(string, int64) bool) { r.Exceptions()(yield) },
	})
}

// Inbound returns the metrics of all inbound traffic, the total of a service. The metrics have no labels, and
// separate names: a resource for the total would count twice in sums over resources. The caller owns the slice.
func Inbound() []Metric {
	all := ofView("inbound_", nil)
	for i := range all {
		all[i].Help = inbound(all[i].Help)
	}
	return all
}

// inbound returns the HELP of a metric of all inbound traffic.
func inbound(help string) string {
	return "All inbound traffic: " + strings.ToLower(help[:1]) + help[1:]
}

// ofView returns the metrics of a view: totals, response times, calls in flight, rates of the last second, and the
// peak.
func ofView(prefix string, labels []string) []Metric {
	var totals, rates []Metric
	for _, c := range node.Columns() {
		if c.Kind != node.Count {
			continue
		}
		m := Metric{
			Name: prefix + c.Name + "_total", Type: Counter, Labels: labels, Help: c.Help + ".",
			Value: func(r *Reading) float64 { return float64(*c.At(&r.total)) },
		}
		if c.Name == complete {
			m.Labels, m.Value, m.ByCode = append(slices.Clone(labels), "code"), nil, true
			m.Help = c.Help + ", by HTTP status or gRPC code. Calls without a code lack the label."
		}
		totals = append(totals, m)
		if !c.Detail {
			rates = append(rates, Metric{
				Name: prefix + c.Name + "_qps", Type: Gauge, Labels: labels,
				Help:  when(c.Help, "in the last complete second") + ".",
				Value: func(r *Reading) float64 { return float64(*c.At(&r.Last)) },
			})
		}
	}
	return slices.Concat(totals, []Metric{
		{
			Name: prefix + "rt_seconds", Type: Histogram, Unit: "seconds", Labels: labels,
			Help: "Response times of calls that ended.",
		},
		{
			Name: prefix + "in_flight", Type: Gauge, Labels: labels,
			Help:  "Calls in flight, which have started and not ended.",
			Value: func(r *Reading) float64 { return float64(r.InFlight) },
		},
		{
			Name: prefix + "in_flight_seconds_total", Type: Counter, Unit: "seconds", Labels: labels,
			Help:  "Total time that calls spent in flight. Its rate is the average number of calls in flight.",
			Value: func(r *Reading) float64 { return r.InFlightSeconds },
		},
		{
			Name: prefix + "in_flight_elapsed_seconds", Type: Gauge, Unit: "seconds", Labels: labels,
			Help:  "Summed age of the calls in flight. Divided by in_flight it is their average age.",
			Value: func(r *Reading) float64 { return r.InFlightElapsed },
		},
	}, rates, []Metric{{
		Name: prefix + "pass_qps_peak", Type: Gauge, Labels: labels,
		Help:  "Highest number of calls admitted in a sliding second that ended in the last minute.",
		Value: func(r *Reading) float64 { return float64(r.Peak) },
	}})
}

// limit returns a function that reads the limit of a grade.
func limit(g collector.Grade) func(*collector.Resource, func(string, int64) bool) {
	return func(r *collector.Resource, yield func(string, int64) bool) {
		if n, ok := r.Limit(g); ok {
			yield("", n)
		}
	}
}

// Namespace is the default prefix of all names.
const Namespace = "windowstat"

// Type is the type of a metric, with Prometheus' names.
type Type string

// The types of metrics.
const (
	Counter        Type = "counter"
	Gauge          Type = "gauge"
	Histogram      Type = "histogram"
	GaugeHistogram Type = "gaugehistogram" // of one second, not of all time
)

// TypeOf returns the type of a metric that is not a histogram. Names of counters end in _total.
func TypeOf(name string) Type {
	if strings.HasSuffix(name, "_total") {
		return Counter
	}
	return Gauge
}

// Family is a metric with its namespace, for a page or a request.
type Family struct {
	Name string // with namespace
	Type Type
	// Unit is the base unit that ends the name before _total, such as seconds, or empty for plain numbers.
	Unit string
	Help string // unescaped; each format escapes it
	// Labels are the label names of all series, if they are known before there are any series.
	Labels []string
	// Calls means that the values are numbers of calls. OTLP has a unit for calls.
	Calls bool
}
