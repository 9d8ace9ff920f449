package sampler

import "github.com/windowstat/windowstat/collector"

// metrics returns the metrics that a Sampler publishes about itself.
func (s *Sampler) metrics() []collector.Metric {
	read := func(f func() float64) func() float64 {
		return func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return f()
		}
	}
	return []collector.Metric{
		{
			Name: "sampler_series", Help: "Series of other libraries that are sampled each second.",
			Value: read(func() float64 { return float64(len(s.order)) }),
		},
		{
			Name: "sampler_errors_total", Help: "Samplings that failed, in part at least.",
			Value: read(func() float64 { return float64(s.errors) }),
		},
		{
			Name: "sampler_missed_seconds_total", Unit: "seconds",
			Help:  "Seconds without the increases of a gatherer, because its gathering, or that of the second before, failed or was late; of several gatherers the sum.",
			Value: read(func() float64 { return float64(s.missed) }),
		},
		{
			Name: "sampler_late_total", Help: "Samplings that were left out, because they ended too long after their second: what was counted meanwhile may be in them.",
			Value: read(func() float64 { return float64(s.late) }),
		},
		{
			Name: "sampler_unplaced_increases_total", Help: "Increases left out, because it is not known how much of them was counted in one second.",
			Value: read(func() float64 { return float64(s.unplaced) }),
		},
		{
			Name:  "sampler_left_out_series",
			Help:  "Series left out of the last sampling: too many, given twice, with a timestamp, or of names or types that are not sampled.",
			Value: read(func() float64 { return float64(s.left) }),
		},
	}
}
