package sentinellog

import (
	"maps"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// metrics returns the metrics about the Follower.
func (f *Follower) metrics() []collector.Metric {
	// byApp returns a metric with the sum over the processes of an application.
	byApp := func(name, help string, value func(*process) int64) collector.Metric {
		return collector.Metric{
			Name: name, Help: help, Labels: []string{"app"},
			Read: func(yield func(float64, ...string)) {
				f.mu.Lock()
				sums := map[string]int64{}
				for _, p := range f.processes {
					sums[p.log.App] += value(p)
				}
				f.mu.Unlock()
				for _, app := range slices.Sorted(maps.Keys(sums)) {
					yield(float64(sums[app]), app)
				}
			},
		}
	}
	// latest returns a metric with the most recent process of each application that has written a row.
	latest := func(name, help string, value func(now, last int64) float64) collector.Metric {
		return collector.Metric{
			Name: name, Unit: "seconds", Help: help, Labels: []string{"app"},
			Read: func(yield func(float64, ...string)) {
				f.mu.Lock()
				last := map[string]int64{}
				for _, p := range f.processes {
					if p.last != 0 {
						last[p.log.App] = max(last[p.log.App], p.last)
					}
				}
				f.mu.Unlock()
				now := time.Now().Unix()
				for _, app := range slices.Sorted(maps.Keys(last)) {
					yield(value(now, last[app]), app)
				}
			},
		}
	}
	locked := func(name, unit, help string, value func() float64) collector.Metric {
		return collector.Metric{Name: name, Unit: unit, Help: help, Value: func() float64 {
			f.mu.Lock()
			defer f.mu.Unlock()
			return value()
		}}
	}
	return []collector.Metric{
		latest("sentinel_last_row_age_seconds",
			"Age of the last row in the metric logs of an application, over all its processes. "+
				"An idle application writes no rows. Absent before the first row.",
			func(now, last int64) float64 { return float64(max(now-last, 0)) }),
		byApp("sentinel_rows_total", "Rows read from the metric logs of an application.",
			func(p *process) int64 { return p.rows }),
		byApp("sentinel_late_rows_total",
			"Rows that were written later than the lag after their second, lost ones included.",
			func(p *process) int64 { return p.late }),
		byApp("sentinel_lost_rows_total",
			"Rows that were not exported, because they were written when later rows had been exported, "+
				"or because their process has more than 20,000 resources.",
			func(p *process) int64 { return p.lost }),
		{
			Name: "sentinel_malformed_lines_total", Labels: []string{"app"},
			Help: "Lines of metric logs that are not rows, or whose numbers cannot be counts of calls.",
			Read: func(yield func(float64, ...string)) {
				f.mu.Lock()
				counts := maps.Clone(f.malformed)
				f.mu.Unlock()
				for _, app := range slices.Sorted(maps.Keys(counts)) {
					yield(float64(counts[app]), app)
				}
			},
		},
		locked("sentinel_read_errors_total", "", "Failures to read a file of the metric logs, or to save the state.",
			func() float64 { return float64(f.failures.count()) }),
		locked("sentinel_processes", "", "Processes whose metric logs are followed.",
			func() float64 { return float64(len(f.processes)) }),
		locked("sentinel_memory_bytes", "bytes", "Approximate memory of the rows, without garbage.",
			func() (sum float64) {
				for _, p := range f.processes {
					sum += float64(p.bytes + p.past.bytes())
				}
				return sum
			}),
	}
}
