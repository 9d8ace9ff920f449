package verify

import (
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/redact"
)

// metrics returns the metrics that a Checker publishes. The labels distinguish the databases of a process, and checks of one of them.
func (k *Checker) metrics() []collector.Metric {
	metric := func(name, unit, help string, value func() float64) collector.Metric {
		return collector.Metric{
			Name: name, Unit: unit, Help: help, Labels: []string{"target", "selector"},
			Read: func(yield func(float64, ...string)) {
				k.mu.Lock()
				v, known := value(), !k.succeeded.IsZero() || strings.HasSuffix(name, "_total") // what is wrong shows with the first check
				k.mu.Unlock()
				if known {
					yield(v, redact.URL(k.options.URL), selector(nil, k.options.Labels))
				}
			},
		}
	}
	return []collector.Metric{
		metric("database_missing_seconds", "seconds", "Seconds in the window of the last check for which the database lacks samples that the metric log has; none before the first check.", func() float64 { return float64(k.last.Missing) }),
		metric("database_different_seconds", "seconds", "Seconds in the window of the last check for which the database has other values than the metric log.", func() float64 { return float64(k.last.Different) }),
		metric("database_extra_seconds", "seconds", "Seconds in the window of the last check for which the database has samples that the metric log does not have, or several samples of one series.", func() float64 { return float64(k.last.Extra) }),
		metric("database_checked_seconds_total", "seconds", "Seconds that were compared with the metric log, in each check anew.", func() float64 { return float64(k.checked) }),
		metric("database_check_errors_total", "", "Checks that failed: the database or the log could not be read, or the response was uncertain.", func() float64 { return float64(k.errors) }),
		metric("database_last_success_timestamp_seconds", "seconds", "Unix time of the last check that succeeded; none before the first.", func() float64 { return float64(k.succeeded.UnixMilli()) / float64(time.Second/time.Millisecond) }),
	}
}
