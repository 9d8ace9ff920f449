package table

import (
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Second is a metric of every sealed second of every resource. Value or RT reads it, unless it is a histogram.
type Second struct {
	// Name without namespace.
	Name string
	// Type is Gauge or the type of a histogram; see [Histograms].
	Type Type
	// Unit is the base unit, the end of the name, or empty for plain numbers.
	Unit string
	// Calls means that the values are numbers of calls.
	Calls bool
	Help  string
	// Labels are the label names, sorted.
	Labels []string
	// Value reads the metric. It reports false if the metric is absent: an idle second has no shortest response time.
	Value func(*node.MetricNode) (float64, bool)
	// RT reads the metric from the histogram of the second. The histogram must not be empty. The metric is absent in
	// seconds whose histogram is no longer kept.
	RT func(*node.Histogram) float64
	// Always means that the metric is sent for every second. Other metrics pause after a resource has been idle for a
	// minute, and resume with its next call.
	Always bool
	// Timed means that the metric depends on response times; a Collector need not record them.
	Timed bool
	// Logged means that the metric log has the metric without loss.
	Logged bool
	// Sum is the HELP of the sum over seconds, or empty if the metric is not additive. The name of the sum has the
	// suffix _total.
	Sum string
}

// logged lists the columns that the metric log has without loss. Of response times it has only the average, in
// milliseconds.
var logged = []string{"pass", "block", "complete", "exception", "occupied_pass", "in_flight_max"}

// Seconds returns the metrics of single seconds in the order of the documentation: a gauge with the label resource for
// each column, and the quantile. The caller owns the slice.
func Seconds() (all []Second) {
	for _, c := range node.Columns() {
		m := Second{
			Name: "persecond_" + c.Name, Type: Gauge, Help: c.Help, Labels: resource, Value: value(c),
			Calls: c.Kind != node.Time, Always: c.Name == "pass", Logged: slices.Contains(logged, c.Name),
		}
		absent := ""
		switch c.Kind { // the HELP of the other kinds includes a time
		case node.Count:
			m.Help, m.Sum = when(c.Help, "in this second"), c.Help+"."
		case node.Time:
			m.Name, m.Unit, m.Timed = m.Name+"_seconds", "seconds", true
			m.Help = when(c.Help, "in this second")
		case node.CallTime: // per second, and therefore a plain number of calls
			m.Timed = true
		}
		if c.None != nil {
			absent = " Absent if no call ended."
		}
		m.Help += "." + absent
		all = append(all, m)
	}
	return append(all, Second{
		Name: "persecond_rt_p99_seconds", Type: Gauge, Unit: "seconds", Labels: resource, Timed: true,
		Help: "99th percentile of the response times of the calls that ended in this second, to within 9%. " +
			"Absent if no call ended or the histogram is no longer kept.",
		RT: func(h *node.Histogram) float64 { return h.Quantile(0.99).Seconds() },
	})
}

// SentinelSeconds returns the metrics of the seconds in Sentinel's metric logs: the columns of [Seconds] that the log
// has without loss, and the average response time. The log has the average in whole milliseconds, rounded down, so its
// product with the completions is a lower bound of the sum and has no metric.
//
// The maximum of the calls in flight is absent where the log has 0: Java's logs always have 0, and sentinel-golang
// updates the maximum only when a call enters, so 0 means that it is unknown.
func SentinelSeconds() []Second {
	all := slices.DeleteFunc(Seconds(), func(m Second) bool { return !m.Logged })
	for i := range all {
		if m := &all[i]; m.Name == "persecond_in_flight_max" {
			m.Help += " Absent if no call entered, and in logs of Java."
			m.Value = func(m *node.MetricNode) (float64, bool) { return float64(m.InFlightMax), m.InFlightMax > 0 }
		}
	}
	return append(all, Second{
		Name: "persecond_rt_avg_seconds", Type: Gauge, Unit: "seconds", Labels: resource, Timed: true,
		Help: "Average response time of the calls that ended in this second, rounded down to milliseconds. " +
			"Absent if no call ended. Only logs of Sentinel have it.",
		Value: func(m *node.MetricNode) (float64, bool) {
			return seconds(int64(m.AvgRT())), m.Complete > 0
		},
	})
}

// SentinelInboundSeconds returns the same metrics for all inbound traffic.
func SentinelInboundSeconds() []Second { return inboundSeconds(SentinelSeconds()) }

// DryRun returns the metric of single seconds that counts the calls that dry runs of limits would have refused. DryRun
// has the labels reason and resource, and reads the seconds of a View of [collector.Resource.DryRuns].
func DryRun() Second {
	return Second{
		Name: "persecond_dry_run_block", Type: Gauge, Labels: []string{"reason", "resource"}, Calls: true,
		Help: "Calls admitted in this second that a dry run of a limit would have refused, by limit. " +
			"Absent without dry runs.",
		Value: func(m *node.MetricNode) (float64, bool) { return float64(m.Block), true },
	}
}

// Histograms returns the histograms of response times for single seconds. The first one is cumulative: it covers all
// calls up to the end of the second, has the timestamp at which the second ends, and classic buckets. The other one
// covers the calls of one second, and has native buckets.
func Histograms() []Second {
	return []Second{
		{
			Name: "persecond_rt_seconds", Type: Histogram, Unit: "seconds", Labels: resource, Timed: true,
			Help: "Response times of all calls that ended before the end of this second.",
		},
		{
			Name: "persecond_rt_distribution_seconds", Type: GaugeHistogram, Unit: "seconds",
			Labels: resource, Timed: true,
			Help: "Response times of the calls that ended in this second. Absent if the histogram is no longer kept.",
		},
	}
}

// InboundSeconds returns the metrics of [Seconds] and [Histograms] for all inbound traffic together, without labels;
// see [Inbound].
func InboundSeconds() []Second { return inboundSeconds(append(Seconds(), Histograms()...)) }

// inboundSeconds turns metrics of resources into the metrics of all inbound traffic.
func inboundSeconds(all []Second) []Second {
	for i := range all {
		m := &all[i]
		m.Name, m.Help, m.Labels = strings.Replace(m.Name, "persecond_", "persecond_inbound_", 1), inbound(m.Help), nil
		if m.Sum != "" {
			m.Sum = inbound(m.Sum)
		}
	}
	return all
}

// RunName is the name of [Run] without namespace.
const RunName = "persecond_run"

// Run returns the metric of single seconds that identifies the process that counted them. Run has no labels, and is
// present in every second of the process for any selection.
func Run(namespace string) Family {
	const help = "Run of the process that counted this second: an integer below 2^53 that is unique to the process. " +
		"Compare it only for equality."
	return Family{Name: namespace + "_" + RunName, Type: Gauge, Help: help}
}

// when inserts a time into the HELP of a column.
func when(help, time string) string {
	what, more, ok := strings.Cut(help, ", ")
	if !ok {
		return help + " " + time
	}
	return what + " " + time + ", " + more
}

// value returns a function that reads a column in base units.
func value(c node.Column) func(*node.MetricNode) (float64, bool) {
	of := func(n int64) float64 { return float64(n) }
	if c.Kind == node.Time || c.Kind == node.CallTime {
		of = seconds
	}
	return func(m *node.MetricNode) (float64, bool) { return of(*c.At(m)), c.None == nil || !c.None(m) }
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }
