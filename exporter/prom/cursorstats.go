package prom

import "github.com/windowstat/windowstat/collector"

// cursorStats sums up the cursors of one name and client host. What they ask for is not a label: it could be of any length.
type cursorStats struct {
	client, cursor string
	lag            int64
	count          cursorCounts
}

// cursorStats returns those of all cursors.
func (s *Seconds) cursorStats() []*cursorStats {
	open := s.line.Open()
	type who struct{ client, cursor string }
	byWho := map[who]*cursorStats{}
	var all []*cursorStats
	for _, x := range s.cursors.list() {
		next, n := x.state()
		k := who{x.Client, x.Cursor}
		if byWho[k] == nil {
			byWho[k] = &cursorStats{client: k.client, cursor: k.cursor}
			all = append(all, byWho[k])
		}
		byWho[k].lag, byWho[k].count = max(byWho[k].lag, s.line.Count(next, open)), byWho[k].count.add(n)
	}
	return all
}

// metrics returns the metrics about the cursors and the responses of the endpoint. cursor_save_errors_total is there only if
// positions are saved.
func (s *Seconds) metrics() []collector.Metric {
	metric := func(name, help string, value func(*cursorStats) int64) collector.Metric {
		return collector.Metric{
			Name: name, Unit: "seconds", Help: help, Labels: []string{"client", "cursor"},
			Read: func(yield func(float64, ...string)) {
				for _, x := range s.cursorStats() {
					yield(float64(value(x)), x.client, x.cursor)
				}
			},
		}
	}
	all := []collector.Metric{
		metric("cursor_lag_seconds", "Sealed seconds that a scraper has not been sent.", func(x *cursorStats) int64 { return x.lag }),
		metric("cursor_delivered_seconds_total", "Seconds delivered to a scraper; those of a response count with its next request, or at once if nothing will confirm them.",
			func(x *cursorStats) int64 { return x.count.delivered }),
		metric("cursor_unconfirmed_seconds_total", "Delivered seconds whose receipt could not be confirmed; the database may lack them.",
			func(x *cursorStats) int64 { return x.count.unconfirmed }),
		metric("cursor_resent_seconds_total", "Seconds that were sent to a scraper again, because its connection was lost after they had been written; the database may have refused them.",
			func(x *cursorStats) int64 { return x.count.resent }),
		metric("cursor_lost_seconds_total", "Seconds that were dropped from the history before a scraper came for them.",
			func(x *cursorStats) int64 { return x.count.lost }),
	}
	all = append(all, collector.Metric{
		Name:  "cursor_evictions_total",
		Help:  "Cursors that were removed to make room for new ones; such a scraper begins again with the whole history.",
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
