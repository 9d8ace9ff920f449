package exporter

import (
	"iter"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Namespace is the prefix of all names unless an exporter is told otherwise.
const Namespace = "windowstat"

// Type is the type of a metric, in Prometheus's words.
type Type string

// The types that the catalogue uses.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric is one row of the catalogue. Where its value comes from is told by the one of Resource, Some, Words and Self that
// is set; a metric with none of them is the histogram, or comes from a [Source].
type Metric struct {
	// Name without namespace.
	Name string
	Type Type
	// Unit is the base unit that the name ends with, before _total; empty for plain numbers.
	Unit string
	Help string
	// Labels are the label names, in order.
	Labels []string
	// Resource reads a metric of each resource.
	Resource func(*node.Snapshot) float64
	// Some reads a metric that not every resource has; ok is false for those that do not.
	Some func(*collector.Resource) (v float64, ok bool)
	// Words reads a metric of each resource that has another label, which its words are the values of.
	Words func(*collector.Resource) iter.Seq2[string, int64]
	// Self reads a metric of the Collector itself.
	Self func(collector.Health) float64
}

// Source is a part of windowstat that has metrics about itself, such as the metric log. Names that are not in the
// catalogue are not shown. The values of the metric's labels, if it has any, come in the catalogue's order. Self may be
// called from several goroutines.
type Source interface {
	Self(yield func(name string, value float64, labels ...string))
}

var (
	resource = []string{"resource"}
	reader   = []string{"client", "cursor"}
	page     = []string{"page"}
	way      = []string{"way"}
)

// Catalogue returns all metrics, in the order in which they are documented. The caller owns the slice.
func Catalogue() []Metric {
	return []Metric{
		{
			Name: "pass_total", Type: Counter, Labels: resource,
			Help:     "Calls that were admitted, counted when they began.",
			Resource: func(s *node.Snapshot) float64 { return float64(s.Total.Pass) },
		},
		{
			Name: Blocks, Type: Counter, Labels: []string{"resource", "reason"},
			Help:  "Calls that were refused, by what refused them: the limit, or the caller's word.",
			Words: (*collector.Resource).Blocks,
		},
		{
			Name: "complete_total", Type: Counter, Labels: resource,
			Help:     "Calls that ended, failed ones included; Sentinel's success.",
			Resource: func(s *node.Snapshot) float64 { return float64(s.Total.Complete) },
		},
		{
			Name: "exception_total", Type: Counter, Labels: resource,
			Help:     "Calls that ended with an error; part of complete.",
			Resource: func(s *node.Snapshot) float64 { return float64(s.Total.Exception) },
		},
		{
			Name: "exception_class_total", Type: Counter, Labels: []string{"resource", "class"},
			Help:  "Calls that ended with an error, by class; none unless classes are configured.",
			Words: (*collector.Resource).Exceptions,
		},
		{
			Name: "occupied_pass_total", Type: Counter, Labels: resource,
			Help:     "Calls that passed on quota borrowed from a later bucket; part of pass.",
			Resource: func(s *node.Snapshot) float64 { return float64(s.Total.OccupiedPass) },
		},
		{
			Name: RT, Type: Histogram, Unit: "seconds", Labels: resource,
			Help: "Response times of calls that ended.",
		},
		{
			Name: "in_flight", Type: Gauge, Labels: resource,
			Help:     "Calls that have begun and not ended.",
			Resource: func(s *node.Snapshot) float64 { return float64(s.InFlight) },
		},
		{
			Name: "pass_qps", Type: Gauge, Labels: resource,
			Help:     "Calls admitted in the last complete second.",
			Resource: func(s *node.Snapshot) float64 { return float64(s.Last.Pass) },
		},
		{
			Name: "block_qps", Type: Gauge, Labels: resource,
			Help:     "Calls refused in the last complete second.",
			Resource: func(s *node.Snapshot) float64 { return float64(s.Last.Block) },
		},
		{
			Name: "complete_qps", Type: Gauge, Labels: resource,
			Help:     "Calls that ended in the last complete second.",
			Resource: func(s *node.Snapshot) float64 { return float64(s.Last.Complete) },
		},
		{
			Name: "exception_qps", Type: Gauge, Labels: resource,
			Help:     "Calls that ended with an error in the last complete second.",
			Resource: func(s *node.Snapshot) float64 { return float64(s.Last.Exception) },
		},
		{
			Name: "pass_qps_peak", Type: Gauge, Labels: resource,
			Help:     "Most calls admitted in any sliding second that ended in the last minute.",
			Resource: func(s *node.Snapshot) float64 { return float64(s.Peak) },
		},
		{
			Name: "limit_qps", Type: Gauge, Labels: resource,
			Help: "Most calls that this process admits in a second: the lowest limit on QPS for all origins together; none without one.",
			Some: limit(collector.QPS),
		},
		{
			Name: "limit_concurrency", Type: Gauge, Labels: resource,
			Help: "Most calls that this process has in flight: the lowest limit on concurrency for all origins together; none without one.",
			Some: limit(collector.Concurrency),
		},
		{
			Name: "resources", Type: Gauge,
			Help: "Resources that are kept apart, the one for overflow included.",
			Self: func(h collector.Health) float64 { return float64(h.Resources) },
		},
		{
			Name: "overflow_events_total", Type: Counter,
			Help: "Calls counted for the resource _other, because there were too many names.",
			Self: func(h collector.Health) float64 { return float64(h.Overflow) },
		},
		{
			Name: "leaves", Type: Gauge,
			Help: "Combinations of resource, origin and entrance that are kept apart; what takes memory.",
			Self: func(h collector.Health) float64 { return float64(h.Leaves) },
		},
		{
			Name: "entrances", Type: Gauge,
			Help: "Entrances that are kept apart.",
			Self: func(h collector.Health) float64 { return float64(h.Entrances) },
		},
		{
			Name: "origin_overflow_events_total", Type: Counter,
			Help: "Calls counted for the origin _other, because their resource had too many origins.",
			Self: func(h collector.Health) float64 { return float64(h.OriginOverflow) },
		},
		{
			Name: "entrance_overflow_events_total", Type: Counter,
			Help: "Calls counted for the entrance _other, because there were too many entrances.",
			Self: func(h collector.Health) float64 { return float64(h.EntranceOverflow) },
		},
		{
			Name: "leaf_overflow_events_total", Type: Counter,
			Help: "Calls counted for the origin and entrance _other, because there were too many combinations.",
			Self: func(h collector.Health) float64 { return float64(h.LeafOverflow) },
		},
		{
			Name: "tree_overflow_events_total", Type: Counter,
			Help: "Calls whose place in the call tree is not shown, because it is too deep or the tree full.",
			Self: func(h collector.Health) float64 { return float64(h.TreeOverflow) },
		},
		{
			Name: "retired_resources_total", Type: Counter,
			Help: "Resources that were retired because they were idle.",
			Self: func(h collector.Health) float64 { return float64(h.Retired) },
		},
		{
			Name: "limits", Type: Gauge,
			Help: "Limits in force.",
			Self: func(h collector.Health) float64 { return float64(h.Limits) },
		},
		{
			Name: "limits_last_reload_timestamp_seconds", Type: Gauge, Unit: "seconds",
			Help: "Unix time at which limits were last taken from the file; 0 while there is none.",
		},
		{
			Name: "limits_reload_failures_total", Type: Counter,
			Help: "Times that the file of limits could not be read again or had a mistake; the old limits stayed.",
		},
		{
			Name: "clock_steps_total", Type: Counter,
			Help: "Times that the wall clock was found a second or more away from where it should have been.",
			Self: func(h collector.Health) float64 { return float64(h.Clock.Steps) },
		},
		{
			Name: "clock_offset_seconds", Type: Gauge, Unit: "seconds",
			Help: "How far the wall clock is ahead of the names of the seconds; slewed away by 1%.",
			Self: func(h collector.Health) float64 { return h.Clock.Offset.Seconds() },
		},
		{
			Name: "clock_repeated_seconds_total", Type: Counter, Unit: "seconds",
			Help: "Seconds that the wall clock named a second time after it was set back; counted in totals, not handed out.",
			Self: func(h collector.Health) float64 { return float64(h.Clock.Repeated) },
		},
		{
			Name: LogSeconds, Type: Counter, Unit: "seconds",
			Help: "Sealed seconds that the metric log has dealt with, idle ones included.",
		},
		{
			Name: LogRows, Type: Counter,
			Help: "Rows written to the metric log.",
		},
		{
			Name: LogErrors, Type: Counter,
			Help: "Attempts to write to the metric log, which are repeated, or to read it that failed.",
		},
		{
			Name: LogLostSeconds, Type: Counter, Unit: "seconds",
			Help: "Seconds of which rows are missing in the metric log, because it could not be written for too long or already held a later second.",
		},
		{
			Name: LogLastSecond, Type: Gauge, Unit: "seconds",
			Help: "Unix time of the last second in the metric log; 0 while there is none.",
		},
		{
			Name: ReplayLines, Type: Counter, Labels: []string{"result"},
			Help: "Lines of an access log that is followed: counted, malformed, later than the tolerance (late), or from the future; only counted ones are calls.",
		},
		{
			Name: CursorLag, Type: Gauge, Unit: "seconds", Labels: reader,
			Help: "Sealed seconds that a reader of the page of seconds has not had.",
		},
		{
			Name: CursorDelivered, Type: Counter, Unit: "seconds", Labels: reader,
			Help: "Seconds that a reader of the page of seconds has had; those of an answer count with the reader's next request.",
		},
		{
			Name: CursorUnconfirmed, Type: Counter, Unit: "seconds", Labels: reader,
			Help: "Seconds of these of which the connection did not prove that they were read: they may be missing in the database.",
		},
		{
			Name: CursorResent, Type: Counter, Unit: "seconds", Labels: reader,
			Help: "Seconds that were sent to a reader again, because the connection broke when they had been written; the database may have refused them.",
		},
		{
			Name: CursorLost, Type: Counter, Unit: "seconds", Labels: reader,
			Help: "Seconds that were dropped from the history before a reader of the page of seconds came for them.",
		},
		{
			Name: CursorSaveErrors, Type: Counter,
			Help: "Times that the positions of the readers of the page of seconds could not be written to disk; after a restart they get some seconds twice.",
		},
		{
			Name: SamplerSeries, Type: Gauge,
			Help: "Series of other libraries that are sampled each second.",
		},
		{
			Name: SamplerErrors, Type: Counter,
			Help: "Samplings that failed, in part at least.",
		},
		{
			Name: SamplerMissed, Type: Counter, Unit: "seconds",
			Help: "Seconds without a sampling, because it failed or took too long.",
		},
		{
			Name: SamplerLeftOut, Type: Gauge,
			Help: "Series that were left out of the last sampling: too many, with names that not every server takes, or two that would have one name.",
		},
		{
			Name: PushLag, Type: Gauge, Unit: "seconds", Labels: way,
			Help: "Sealed seconds that were not pushed yet, by way: remote_write or vm.",
		},
		{
			Name: PushSeconds, Type: Counter, Unit: "seconds", Labels: way,
			Help: "Seconds that were pushed.",
		},
		{
			Name: PushSamples, Type: Counter, Labels: way,
			Help: "Samples that were pushed.",
		},
		{
			Name: PushBytes, Type: Counter, Unit: "bytes", Labels: way,
			Help: "Bytes that were pushed, compressed.",
		},
		{
			Name: PushRetries, Type: Counter, Labels: way,
			Help: "Requests that were sent again, because the server could not be reached or did not take them.",
		},
		{
			Name: PushRefused, Type: Counter, Labels: way,
			Help: "Samples that the server refused for good.",
		},
		{
			Name: PushLost, Type: Counter, Unit: "seconds", Labels: way,
			Help: "Seconds that were dropped from the history before they could be pushed.",
		},
		{
			Name: PushSucceeded, Type: Gauge, Unit: "seconds", Labels: way,
			Help: "Unix time at which something was pushed last.",
		},
		{
			Name: ScrapeDuration, Type: Gauge, Unit: "seconds", Labels: page,
			Help: "How long the last answer of a page took, until it was written: metrics or seconds.",
		},
		{
			Name: ScrapeSamples, Type: Gauge, Labels: page,
			Help: "Samples in the last answer of a page.",
		},
		{
			Name: ScrapeBytes, Type: Gauge, Unit: "bytes", Labels: page,
			Help: "Size of the last answer of a page, before it was zipped.",
		},
		{
			Name: BuildInfo, Type: Gauge, Labels: []string{"version", "goversion"},
			Help: "Always 1; the labels tell the build.",
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
