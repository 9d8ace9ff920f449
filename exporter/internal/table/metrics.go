package table

import (
	"iter"

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
	Value func(*node.Snapshot) float64
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

// Metrics returns the metrics of resources, in the order in which they are documented. The caller owns the slice.
func Metrics() []Metric {
	return []Metric{
		{
			Name: "pass_total", Type: Counter, Labels: resource,
			Help:  "Calls that were admitted, counted when they began.",
			Value: func(s *node.Snapshot) float64 { return float64(s.Total.Pass) },
		},
		{
			Name: Blocks, Type: Counter, Labels: []string{"resource", "reason"},
			Help:     "Calls refused, by reason: the limit that refused them, or the reason passed to Block.",
			Labelled: (*collector.Resource).Blocks,
		},
		{
			Name: "complete_total", Type: Counter, Labels: resource,
			Help:  "Calls that ended, failed ones included; Sentinel's success.",
			Value: func(s *node.Snapshot) float64 { return float64(s.Total.Complete) },
		},
		{
			Name: "exception_total", Type: Counter, Labels: resource,
			Help:  "Calls that ended with an error; part of complete.",
			Value: func(s *node.Snapshot) float64 { return float64(s.Total.Exception) },
		},
		{
			Name: "exception_class_total", Type: Counter, Labels: []string{"resource", "class"},
			Help:     "Calls that ended with an error, by class; none unless classes are configured.",
			Labelled: (*collector.Resource).Exceptions,
		},
		{
			Name: "occupied_pass_total", Type: Counter, Labels: resource,
			Help:  "Calls that passed on quota borrowed from a later bucket; part of pass.",
			Value: func(s *node.Snapshot) float64 { return float64(s.Total.OccupiedPass) },
		},
		{
			Name: RT, Type: Histogram, Unit: "seconds", Labels: resource,
			Help: "Response times of calls that ended.",
		},
		{
			Name: "in_flight", Type: Gauge, Labels: resource,
			Help:  "Calls that have begun and not ended.",
			Value: func(s *node.Snapshot) float64 { return float64(s.InFlight) },
		},
		{
			Name: "pass_qps", Type: Gauge, Labels: resource,
			Help:  "Calls admitted in the last complete second.",
			Value: func(s *node.Snapshot) float64 { return float64(s.Last.Pass) },
		},
		{
			Name: "block_qps", Type: Gauge, Labels: resource,
			Help:  "Calls refused in the last complete second.",
			Value: func(s *node.Snapshot) float64 { return float64(s.Last.Block) },
		},
		{
			Name: "complete_qps", Type: Gauge, Labels: resource,
			Help:  "Calls that ended in the last complete second.",
			Value: func(s *node.Snapshot) float64 { return float64(s.Last.Complete) },
		},
		{
			Name: "exception_qps", Type: Gauge, Labels: resource,
			Help:  "Calls that ended with an error in the last complete second.",
			Value: func(s *node.Snapshot) float64 { return float64(s.Last.Exception) },
		},
		{
			Name: "pass_qps_peak", Type: Gauge, Labels: resource,
			Help:  "Most calls admitted in any sliding second that ended in the last minute.",
			Value: func(s *node.Snapshot) float64 { return float64(s.Peak) },
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
	}
}

// limit reads the limit of a grade.
func limit(g collector.Grade) func(*collector.Resource) (float64, bool) {
	return func(r *collector.Resource) (float64, bool) {
		n, ok := r.Limit(g)
		return float64(n), ok
	}
}
