package replay

import "github.com/windowstat/windowstat/collector"

// Metrics are what a Follower publishes on its Collector: what became of the lines so far.
func (f *Follower) Metrics() []collector.Metric {
	count := func(name, help string, of func(*Report) int64) collector.Metric {
		return collector.Metric{Name: name, Help: help, Read: func(yield func(float64, ...string)) {
			r := f.Report()
			yield(float64(of(&r)))
		}}
	}
	return []collector.Metric{
		{
			Name: "replay_lines_total", Labels: []string{"result"},
			Help: "Lines of the access logs that are followed: counted, malformed, later than the tolerance (late), or from the future; only counted ones are calls.",
			Read: func(yield func(float64, ...string)) {
				r := f.Report()
				yield(float64(r.Lines-r.Uncounted()), "counted")
				yield(float64(r.Malformed), "malformed")
				yield(float64(r.Late), "late")
				yield(float64(r.Future), "future")
			},
		},
		count("replay_truncations_total", "How often access logs that are followed were truncated. What is written between the copy and the truncation may be lost.",
			func(r *Report) int64 { return r.Truncated }),
		count("replay_cut_bytes_total", "Bytes of access logs that were seen, and cut off before they were read: their lines are not counted.",
			func(r *Report) int64 { return r.Cut }),
	}
}
