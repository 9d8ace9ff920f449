// Package table has the tables of metrics: what /metrics shows of each resource, and what each sealed second carries. The
// ways out walk it, and so do documents, dashboards and their tests.
//
// A row says everything about a metric once: its name without namespace, its unit, its HELP, how it is read, and when there is no value.
// A count that is added to a record becomes a column of package node and a row here. Pages, pushes, the live page and the terminal view
// have it then, and docs/metrics.md is generated from it.
//
// [Metrics] are the rows of /metrics, whose values are of the moment of a scrape, and [Seconds] those of single seconds. What is counted
// of all inbound traffic has rows of its own, [Inbound] and [InboundSeconds], with names of their own and without the label resource: as
// one of the resources it would be counted twice by every sum over them.
package table

import (
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Metric is a metric that /metrics shows of each resource, or of all inbound traffic. One of Value, ByCode and
// Each says how to read it; the histogram has none of them.
type Metric struct {
	// Name without namespace.
	Name string
	Type Type
	// Unit is the base unit that the name ends with, before _total; empty for plain numbers.
	Unit string
	Help string
	// Labels are the label names, in order.
	Labels []string
	// Value reads a metric from a snapshot of the resource, or of one of its origins or entrances.
	Value func(*Reading) float64
	// ByCode marks the metric that has the label code as well: its values are Codes of the Reading, the first of which is without
	// that label.
	ByCode bool
	// Each calls yield for each series that a resource has of the metric, which may be none: with the value of its label beside
	// resource, empty if it has no other, and the number.
	Each func(r *collector.Resource, yield func(string, int64) bool)
}

var resource = []string{"resource"}

// Names of metrics that code treats apart.
const (
	Blocks   = "block_total"
	complete = "complete"
)

// Reading is a snapshot of a view, as [Metric].Value reads it.
type Reading struct {
	node.Snapshot
	Codes node.Codes      // Total.Complete by code, as of the same moment
	total node.MetricNode // Total, for the columns
}

// Set sets the reading to a snapshot.
func (r *Reading) Set(s node.Snapshot) { r.Snapshot, r.total.Counts = s, s.Total }

// Metrics returns the metrics of resources, in the order in which they are documented. The caller owns the slice.
func Metrics() []Metric {
	all := append(ofView("", resource), []Metric{
		{
			Name: "limit_qps", Type: Gauge, Labels: resource,
			Help: "Most calls that this process admits in a second: the lowest limit on QPS for all origins together; none without one.",
			Each: limit(collector.QPS),
		},
		{
			Name: "limit_concurrency", Type: Gauge, Labels: resource,
			Help: "Most calls that this process has in flight: the lowest limit on concurrency for all origins together; none without one.",
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
		Help: "Calls admitted that a dry run of a limit would have refused, by limit; none without dry runs.",
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
		Help: "Calls that ended with an error, by class; none unless classes are configured.",
		Each: func(r *collector.Resource, yield func(string, int64) bool) { r.Exceptions()(yield) },
	})
}

// Inbound returns the metrics of all inbound traffic, which is the total of a service. They have no labels, and names of their
// own: as a resource among resources, sums would count it twice. The caller owns the slice.
func Inbound() []Metric {
	all := ofView("inbound_", nil)
	for i := range all {
		all[i].Help = inbound(all[i].Help)
	}
	return all
}

// inbound is the help of a metric of all inbound traffic.
func inbound(help string) string {
	return "All inbound traffic: " + strings.ToLower(help[:1]) + help[1:]
}

// ofView are the metrics of a view: totals, response times, what is in flight, the rates of the last second, the peak.
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
			m.Help = c.Help + ", by HTTP status or gRPC code; those that have none lack that label."
		}
		totals = append(totals, m)
		if !c.Detail {
			rates = append(rates, Metric{
				Name: prefix + c.Name + "_qps", Type: Gauge, Labels: labels, Help: when(c.Help, "in the last complete second") + ".",
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
			Help:  "Calls in flight: they have begun and not ended.",
			Value: func(r *Reading) float64 { return float64(r.InFlight) },
		},
		{
			Name: prefix + "in_flight_seconds_total", Type: Counter, Unit: "seconds", Labels: labels,
			Help:  "Time that all calls together were in flight. Its rate is how many calls were in flight on average.",
			Value: func(r *Reading) float64 { return r.InFlightSeconds },
		},
		{
			Name: prefix + "in_flight_elapsed_seconds", Type: Gauge, Unit: "seconds", Labels: labels,
			Help:  "Response times so far of the calls in flight, all together. Divided by in_flight it is their average age.",
			Value: func(r *Reading) float64 { return r.InFlightElapsed },
		},
	}, rates, []Metric{{
		Name: prefix + "pass_qps_peak", Type: Gauge, Labels: labels,
		Help:  "Most calls admitted in any sliding second that ended in the last minute.",
		Value: func(r *Reading) float64 { return float64(r.Peak) },
	}})
}

// limit reads the limit of a grade.
func limit(g collector.Grade) func(*collector.Resource, func(string, int64) bool) {
	return func(r *collector.Resource, yield func(string, int64) bool) {
		if n, ok := r.Limit(g); ok {
			yield("", n)
		}
	}
}

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
	// Labels are the names of the labels of all series, where that is known before there are any.
	Labels []string
}
