package table

import (
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Second is a metric that has a value for every sealed second of every resource. One of Value and RT reads it, unless it is a histogram.
type Second struct {
	// Name without namespace.
	Name string
	// Type is Gauge, or that of a histogram, see [Histograms].
	Type Type
	// Unit is the base unit that the name ends with; empty for plain numbers.
	Unit string
	Help string
	// Labels are the label names, sorted.
	Labels []string
	// Value reads the metric. It reports false where there is none: an idle second has no shortest response time.
	Value func(*node.MetricNode) (float64, bool)
	// RT reads the metric from the response times of the second, of which there are some. Seconds whose histogram is not kept
	// any more do not have the metric.
	RT func(*node.Histogram) float64
	// Always metrics are sent of every second. The others stop for a resource that has been idle for a minute, and begin again
	// with its next call.
	Always bool
	// Timed metrics are about response times, which a Collector may not know.
	Timed bool
	// Logged metrics are in the metric log, too, and what is read from there is the same.
	Logged bool
	// Sum is the help of the metric's sum over seconds, which has the name with _total; empty for a metric that does not add up.
	Sum string
}

// logged are the columns that the metric log has without a loss: it has the average response time in milliseconds.
var logged = []string{"pass", "block", "complete", "exception", "occupied_pass", "in_flight_max"}

// Seconds returns the metrics of single seconds, all gauges with the label resource, in the order in which they are
// documented: a metric for each column, and the quantile. The caller owns the slice.
func Seconds() (all []Second) {
	for _, c := range node.Columns() {
		m := Second{
			Name: "persecond_" + c.Name, Type: Gauge, Help: c.Help, Labels: resource, Value: value(c),
			Always: c.Name == "pass", Logged: slices.Contains(logged, c.Name),
		}
		switch c.Kind { // the help of others says when
		case node.Count:
			m.Help, m.Sum = when(c.Help, "in this second"), c.Help+"."
		case node.Time:
			m.Name, m.Unit, m.Timed = m.Name+"_seconds", "seconds", true
			m.Help = when(c.Help, "in this second")
		case node.CallTime: // of a second, and so a plain number of calls
			m.Timed = true
		}
		if c.None != nil {
			m.Help += "; none if no call ended"
		}
		m.Help += "."
		all = append(all, m)
	}
	return append(all, Second{
		Name: "persecond_rt_p99_seconds", Type: Gauge, Unit: "seconds", Labels: resource, Timed: true,
		Help: "Response time that 99% of the calls that ended in this second did not exceed, to 9%; none if no call ended, or the histogram is not kept any more.",
		RT:   func(h *node.Histogram) float64 { return h.Quantile(0.99).Seconds() },
	})
}

// DryRun is the metric of single seconds, with the labels reason and resource, of what dry runs of limits would have refused. It reads
// the seconds of a View of [collector.Resource.DryRuns].
func DryRun() Second {
	return Second{
		Name: "persecond_dry_run_block", Type: Gauge, Labels: []string{"reason", "resource"},
		Help:  "Calls admitted in this second that a dry run of a limit would have refused, by limit; none without dry runs.",
		Value: func(m *node.MetricNode) (float64, bool) { return float64(m.Block), true },
	}
}

// Histograms returns the histograms of response times of single seconds. One is of all calls up to the end of a second, has the time of
// that, and classic buckets. The other one is of the calls of one second, and has native buckets.
func Histograms() []Second {
	return []Second{
		{
			Name: "persecond_rt_seconds", Type: Histogram, Unit: "seconds", Labels: resource, Timed: true,
			Help: "Response times of all calls that ended before the end of this second.",
		},
		{
			Name: "persecond_rt_distribution_seconds", Type: GaugeHistogram, Unit: "seconds", Labels: resource, Timed: true,
			Help: "Response times of the calls that ended in this second; none if the histogram is not kept any more.",
		},
	}
}

// InboundSeconds returns the same metrics and histograms of all inbound traffic, without labels, see [Inbound].
func InboundSeconds() []Second {
	all := append(Seconds(), Histograms()...)
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

// Run is the metric of single seconds, without labels, that tells which process counted them. It is there in every second of the
// process, whatever is selected.
func Run(namespace string) Family {
	const help = "Run of the process that counted this second: an integer below 2^53 that no other process has, to be compared for equality only."
	return Family{Name: namespace + "_" + RunName, Type: Gauge, Help: help}
}

// when adds a time to the help of a column.
func when(help, time string) string {
	what, more, ok := strings.Cut(help, ", ")
	if !ok {
		return help + " " + time
	}
	return what + " " + time + ", " + more
}

// value reads a column in base units.
func value(c node.Column) func(*node.MetricNode) (float64, bool) {
	of := func(n int64) float64 { return float64(n) }
	if c.Kind == node.Time || c.Kind == node.CallTime {
		of = seconds
	}
	return func(m *node.MetricNode) (float64, bool) { return of(*c.At(m)), c.None == nil || !c.None(m) }
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }
