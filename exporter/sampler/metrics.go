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
			Name: "sampler_missed_seconds_total", Unit: "seconds", Help: "Seconds without a sampling, because it failed or took too long.",
			Value: read(func() float64 { return float64(s.missed) }),
		},
		{
			Name: "sampler_late_total", Help: "Samplings that had ended only more than a tenth of a second after their second: what was counted meanwhile may be in it.",
			Value: read(func() float64 { return float64(s.late) }),
		},
		{
			Name:  "sampler_left_out_series",
			Help:  "Series left out of the last sampling: too many, with names that not every server takes, or of a metric that has changed its type.",
			Value: read(func() float64 { return float64(s.left) }),
		},
	}
}

// Metrics describes the metrics that a [Sampler] publishes about itself, for documentation. They have no values.
func Metrics() []collector.Metric { return new(Sampler).metrics() }
