package exporter

import "github.com/windowstat/windowstat/node"

// Second is a metric that has a value for every sealed second of every resource.
type Second struct {
	// Name without namespace.
	Name string
	// Unit is the base unit that the name ends with; empty for plain numbers.
	Unit string
	Help string
	// Value reads the metric. It reports false where there is none: an idle second has no shortest response time.
	Value func(*node.MetricNode) (float64, bool)
}

// Seconds returns the metrics of single seconds, all gauges with the label resource, in the order in which they are
// documented. The caller owns the slice.
func Seconds() []Second {
	count := func(f func(*node.MetricNode) int64) func(*node.MetricNode) (float64, bool) {
		return func(m *node.MetricNode) (float64, bool) { return float64(f(m)), true }
	}
	return []Second{
		{"persecond_pass", "", "Calls that were admitted in this second.", count(func(m *node.MetricNode) int64 { return m.Pass })},
		{"persecond_block", "", "Calls that were refused in this second.", count(func(m *node.MetricNode) int64 { return m.Block })},
		{"persecond_complete", "", "Calls that ended in this second, failed ones included.", count(func(m *node.MetricNode) int64 { return m.Complete })},
		{"persecond_exception", "", "Calls that ended in this second with an error.", count(func(m *node.MetricNode) int64 { return m.Exception })},
		{"persecond_occupied_pass", "", "Calls that passed in this second on quota borrowed from it before.", count(func(m *node.MetricNode) int64 { return m.OccupiedPass })},
		{"persecond_in_flight", "", "Calls that were in flight when this second ended.", count(func(m *node.MetricNode) int64 { return m.InFlight })},
		{"persecond_in_flight_max", "", "Most calls that were in flight at any moment of this second.", count(func(m *node.MetricNode) int64 { return m.InFlightMax })},
		{"persecond_pass_peak", "", "Most calls admitted in any sliding second that ended in this one.", count(func(m *node.MetricNode) int64 { return m.PassPeak })},
		{"persecond_rt_sum_seconds", "seconds", "Response time of all calls that ended in this second.", func(m *node.MetricNode) (float64, bool) {
			return m.RTSum.Seconds(), true
		}},
		{"persecond_rt_min_seconds", "seconds", "Shortest response time of this second; none if no call ended.", func(m *node.MetricNode) (float64, bool) {
			return m.RTMin.Seconds(), m.Complete > 0
		}},
		{"persecond_rt_max_seconds", "seconds", "Longest response time of this second; none if no call ended.", func(m *node.MetricNode) (float64, bool) {
			return m.RTMax.Seconds(), m.Complete > 0
		}},
	}
}
