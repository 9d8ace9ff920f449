package metriclog

import (
	"sync/atomic"

	"github.com/windowstat/windowstat/collector"
)

// stats count the work of a Writer. They are atomic, not guarded by its mutex: a hanging disk must not block a scrape.
type stats struct{ seconds, rows, errors, lost, last atomic.Int64 }

// metrics returns the metrics that a Writer publishes about itself.
func (w *Writer) metrics() []collector.Metric {
	read := func(n func() int64) func() float64 { return func() float64 { return float64(n()) } }
	return []collector.Metric{
		{
			Name: "metriclog_seconds_total", Unit: "seconds", Help: "Sealed seconds that the metric log has dealt with, idle ones included.",
			Value: read(func() int64 { return w.stat.seconds.Load() }),
		},
		{
			Name: "metriclog_rows_total", Help: "Rows written to the metric log.",
			Value: read(func() int64 { return w.stat.rows.Load() }),
		},
		{
			Name: "metriclog_errors_total", Help: "Failed attempts to write the metric log, which are repeated, or to read it.",
			Value: read(func() int64 { return w.stat.errors.Load() }),
		},
		{
			Name: "metriclog_lost_seconds_total", Unit: "seconds",
			Help:  "Seconds of which the metric log lacks rows, because it could not be written for too long or already held a later second.",
			Value: read(func() int64 { return w.stat.lost.Load() }),
		},
		{
			Name: "metriclog_last_second_timestamp_seconds", Unit: "seconds",
			Help:  "Unix time of the last second in the metric log; 0 while there is none.",
			Value: read(func() int64 { return w.stat.last.Load() }),
		},
	}
}

// Metrics describes the metrics that a [Writer] publishes about itself, for documentation. They have no values.
func Metrics() []collector.Metric { return new(Writer).metrics() }
