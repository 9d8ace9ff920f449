package prom

import "github.com/windowstat/windowstat/collector"

// metrics returns the metrics about the cursors and the responses of the endpoint. cursor_save_errors_total is there only if
// positions are saved.
func (s *Seconds) metrics() []collector.Metric {
	// Of the cursors of one name and client host pages show the sum, and the longest lag, as of all metrics with labels in common.
	// What they ask for is not a label: it could be of any length.
	metric := func(name, help string, value func(next int64, n cursorCounts) int64) collector.Metric {
		return collector.Metric{
			Name: name, Unit: "seconds", Help: help, Labels: []string{"client", "cursor"},
			Read: func(yield func(float64, ...string)) {
				for _, x := range s.cursors.list() {
					yield(float64(value(x.state())), x.Client, x.Cursor)
				}
			},
		}
	}
	all := []collector.Metric{
		metric("cursor_lag_seconds", "Sealed seconds that a scraper has not been sent.", func(next int64, _ cursorCounts) int64 { return s.line.Count(next, s.line.Open()) }),
		metric("cursor_delivered_seconds_total", "Seconds delivered to a scraper; those of a response count with its next request, or at once if nothing will confirm them.",
			func(_ int64, n cursorCounts) int64 { return n.delivered }),
		metric("cursor_unconfirmed_seconds_total", "Delivered seconds whose receipt could not be confirmed; the database may lack them.",
			func(_ int64, n cursorCounts) int64 { return n.unconfirmed }),
		metric("cursor_resent_seconds_total", "Seconds that were sent to a scraper again, because its connection was lost after they had been written; the database may have refused them.",
			func(_ int64, n cursorCounts) int64 { return n.resent }),
		metric("cursor_lost_seconds_total", "Seconds that were dropped from the history before a scraper came for them.",
			func(_ int64, n cursorCounts) int64 { return n.lost }),
	}
	all = append(all, collector.Metric{
		Name:  "cursor_evictions_total",
		Help:  "Cursors that were evicted by new ones; such a scraper begins again with the whole history.",
		Value: func() float64 { return float64(s.cursors.evictions()) },
	})
	if s.positions != "" {
		all = append(all, collector.Metric{
			Name:  "cursor_save_errors_total",
			Help:  "Failures to write the positions of scrapers to disk, or to read them at the start; after a restart these get some seconds twice.",
			Value: func() float64 { return float64(s.saveErrors.Load()) },
		})
	}
	return append(all, s.out.last.metrics()...)
}

// Metrics describes the metrics that [Handler] and [Seconds] publish about themselves, for documentation. They have no values.
func Metrics() []collector.Metric { return (&Seconds{positions: positionsName}).metrics() }
