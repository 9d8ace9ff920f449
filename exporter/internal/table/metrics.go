package table

import (
	"iter"
	"slices"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Metric is a metric that /metrics shows of each resource. One of Value, Optional and Labelled reads it; the histogram has
// none of them.
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
	// Optional reads a metric that not every resource has; ok is false for those that do not.
	Optional func(*collector.Resource) (v float64, ok bool)
	// Labelled reads a metric that has another label: its values, with what was counted for each.
	Labelled func(*collector.Resource) iter.Seq2[string, int64]
}

var resource = []string{"resource"}

// Names of metrics that code treats apart.
const (
	RT     = "rt_seconds"
	Blocks = "block_total"
)

// Reading is a snapshot of a view, as [Metric].Value reads it.
type Reading struct {
	node.Snapshot
	total node.MetricNode // Total, for the columns
}

// Set sets the reading to a snapshot.
func (r *Reading) Set(s node.Snapshot) { r.Snapshot, r.total.Counts = s, s.Total }

// Metrics returns the metrics of resources, in the order in which they are documented. The caller owns the slice.
func Metrics() []Metric {
	var totals, rates []Metric
	for _, c := range node.Columns() {
		if c.Kind != node.Count {
			continue
		}
		m := Metric{
			Name: c.Name + "_total", Type: Counter, Labels: resource, Help: c.Help + ".",
			Value: func(r *Reading) float64 { return float64(*c.At(&r.total)) },
		}
		if m.Name == Blocks {
			m.Labels, m.Value, m.Labelled = []string{"resource", "reason"}, nil, (*collector.Resource).Blocks
			m.Help = "Calls refused, by reason: the limit that refused them, or the reason passed to Block."
		}
		totals = append(totals, m)
		if c.Name == "exception" {
			totals = append(totals, Metric{
				Name: "exception_class_total", Type: Counter, Labels: []string{"resource", "class"},
				Help: c.Help + ", by class; none unless classes are configured.", Labelled: (*collector.Resource).Exceptions,
			})
		}
		if !c.Detail {
			rates = append(rates, Metric{
				Name: c.Name + "_qps", Type: Gauge, Labels: resource, Help: when(c.Help, "in the last complete second") + ".",
				Value: func(r *Reading) float64 { return float64(*c.At(&r.Last)) },
			})
		}
	}
	return slices.Concat(totals, []Metric{
		{
			Name: RT, Type: Histogram, Unit: "seconds", Labels: resource,
			Help: "Response times of calls that ended.",
		},
		{
			Name: "in_flight", Type: Gauge, Labels: resource,
			Help:  "Calls in flight: they have begun and not ended.",
			Value: func(r *Reading) float64 { return float64(r.InFlight) },
		},
		{
			Name: "in_flight_seconds_total", Type: Counter, Unit: "seconds", Labels: resource,
			Help:  "Time that all calls together were in flight. Its rate is how many calls were in flight on average.",
			Value: func(r *Reading) float64 { return r.InFlightSeconds },
		},
	}, rates, []Metric{
		{
			Name: "pass_qps_peak", Type: Gauge, Labels: resource,
			Help:  "Most calls admitted in any sliding second that ended in the last minute.",
			Value: func(r *Reading) float64 { return float64(r.Peak) },
		},
		{
			Name: "limit_qps", Type: Gauge, Labels: resource,
			Help:     "Most calls that this process admits in a second: the lowest limit on QPS for all origins together; none without one.",
			Optional: limit(collector.QPS),
		},
		{
			Name: "limit_concurrency", Type: Gauge, Labels: resource,
			Help:     "Most calls that this process has in flight: the lowest limit on concurrency for all origins together; none without one.",
			Optional: limit(collector.Concurrency),
		},
	})
}

// limit reads the limit of a grade.
func limit(g collector.Grade) func(*collector.Resource) (float64, bool) {
	return func(r *collector.Resource) (float64, bool) {
		n, ok := r.Limit(g)
		return float64(n), ok
	}
}
