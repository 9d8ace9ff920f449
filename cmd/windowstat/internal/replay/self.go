package replay

import "github.com/windowstat/windowstat/exporter"

// Self implements exporter.Source: the lines so far, by result.
func (f *Follower) Self(yield func(name string, value float64, labels ...string)) {
	r := f.Report()
	lines := func(n int64, result string) { yield(exporter.ReplayLines, float64(n), result) }
	lines(r.Lines-r.Malformed-r.Late-r.Future, "counted")
	lines(r.Malformed, "malformed")
	lines(r.Late, "late")
	lines(r.Future, "future")
}
