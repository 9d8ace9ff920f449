package metriclog

import (
	"sync/atomic"

	"github.com/windowstat/windowstat/collector"
)

// stats count the work of a Writer. They are atomic, not guarded by its mutex: a hanging disk must not block a scrape.
type stats struct{ seconds, rows, errors, lost, last atomic.Int64 }

// metrics are those that a Writer publishes about itself.
func (w *Writer) metrics() (all []collector.Metric) {
	metric := func(name, unit, help string, n *atomic.Int64) {
		all = append(all, collector.Metric{Name: name, Unit: unit, Help: help, Value: func() float64 { return float64(n.Load()) }})
	}
	metric("metriclog_seconds_total", "seconds", "Sealed seconds that the metric log has dealt with, idle ones included.", &w.stat.seconds)
	metric("metriclog_rows_total", "", "Rows written to the metric log.", &w.stat.rows)
	metric("metriclog_errors_total", "", "Failed attempts to write the metric log, which are repeated, or to read it.", &w.stat.errors)
	metric("metriclog_lost_seconds_total", "seconds",
		"Seconds of which the metric log lacks rows, because it could not be written for too long or already held a later second.", &w.stat.lost)
	metric("metriclog_last_second_timestamp_seconds", "seconds", "Unix time of the last second in the metric log; 0 while there is none.", &w.stat.last)
	return all
}

// Metrics describes the metrics that a [Writer] publishes about itself, for documentation. They have no values.
func Metrics() []collector.Metric { return new(Writer).metrics() }
