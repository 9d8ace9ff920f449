package table

import "github.com/windowstat/windowstat/node"

// Second is a metric that has a value for every sealed second of every resource. Where the value comes from is told by
// the one of Value and RT that is set.
type Second struct {
	// Name without namespace.
	Name string
	// Unit is the base unit that the name ends with; empty for plain numbers.
	Unit string
	Help string
	// Value reads the metric. It reports false where there is none: an idle second has no shortest response time.
	Value func(*node.MetricNode) (float64, bool)
	// RT reads the metric from the response times of the second, of which there are some. They are kept for a minute, and
	// older seconds do not have the metric.
	RT func(*node.Histogram) float64
	// Logged says that the metric log has it, too: what is read from there is the same.
	Logged bool
}

// Seconds returns the metrics of single seconds, all gauges with the label resource, in the order in which they are
// documented. The caller owns the slice.
func Seconds() []Second {
	count := func(f func(*node.MetricNode) int64) func(*node.MetricNode) (float64, bool) {
		return func(m *node.MetricNode) (float64, bool) { return float64(f(m)), true }
	}
	return []Second{
		{
			Name: "persecond_pass", Help: "Calls that were admitted in this second.",
			Value: count(func(m *node.MetricNode) int64 { return m.Pass }), Logged: true,
		},
		{
			Name: "persecond_block", Help: "Calls that were refused in this second.",
			Value: count(func(m *node.MetricNode) int64 { return m.Block }), Logged: true,
		},
		{
			Name: "persecond_complete", Help: "Calls that ended in this second, failed ones included.",
			Value: count(func(m *node.MetricNode) int64 { return m.Complete }), Logged: true,
		},
		{
			Name: "persecond_exception", Help: "Calls that ended in this second with an error.",
			Value: count(func(m *node.MetricNode) int64 { return m.Exception }), Logged: true,
		},
		{
			Name: "persecond_occupied_pass", Help: "Calls admitted in this second on quota that they had borrowed from it earlier.",
			Value: count(func(m *node.MetricNode) int64 { return m.OccupiedPass }), Logged: true,
		},
		{
			Name: "persecond_in_flight", Help: "Calls that were in flight when this second ended.",
			Value: count(func(m *node.MetricNode) int64 { return m.InFlight }),
		},
		{
			Name: "persecond_in_flight_max", Help: "Most calls that were in flight at any moment of this second.",
			Value: count(func(m *node.MetricNode) int64 { return m.InFlightMax }), Logged: true,
		},
		{
			Name: "persecond_pass_peak", Help: "Most calls admitted in any sliding second that ended in this one.",
			Value: count(func(m *node.MetricNode) int64 { return m.PassPeak }),
		},
		{
			Name: "persecond_rt_sum_seconds", Unit: "seconds", Help: "Response time of all calls that ended in this second.",
			Value: func(m *node.MetricNode) (float64, bool) { return m.RTSum.Seconds(), true },
		},
		{
			Name: "persecond_rt_min_seconds", Unit: "seconds", Help: "Shortest response time of this second; none if no call ended.",
			Value: func(m *node.MetricNode) (float64, bool) { return m.RTMin.Seconds(), m.Complete > 0 },
		},
		{
			Name: "persecond_rt_max_seconds", Unit: "seconds", Help: "Longest response time of this second; none if no call ended.",
			Value: func(m *node.MetricNode) (float64, bool) { return m.RTMax.Seconds(), m.Complete > 0 },
		},
		{
			Name: "persecond_rt_p99_seconds", Unit: "seconds",
			Help: "Response time that 99% of the calls that ended in this second did not exceed, to 9%; none if no call ended, or the second was over a minute ago.",
			RT:   func(h *node.Histogram) float64 { return h.Quantile(0.99).Seconds() },
		},
	}
}

// SecondsRT is the histogram of single seconds: of all response times up to the end of its second, with the label
// resource.
const (
	SecondsRT     = "persecond_rt_seconds"
	SecondsRTHelp = "Response times of all calls that ended before the end of this second."
)
