package prom

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/delivery"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/internal/fairshare"
)

// cursors holds the cursors of all scrapers, at most max. A new cursor is always admitted. If the table is full, it
// evicts the cursor with the shortest history of frequent, steady requests. Made-up names have no such history; among
// them, the host with the most cursors loses its longest-unused one. A scraper with an hour of steady requests
// therefore outlives any flood of newer names, from one address or from a thousand. A host with a quarter of all
// cursors evicts its own. Cursors unused for expiry are removed.
type cursors struct {
	max    int
	expiry time.Duration
	line   *seconds.Line

	mu      sync.Mutex // guards all, order and the fields of cursors below their mu
	all     map[scraper]*cursor
	order   fairshare.Table[string, *cursor]
	evicted atomic.Int64
}

const (
	// maxInterval is the longest time between two frequent requests.
	maxInterval = 10 * time.Minute
	// maxSteady bounds the value in a file, in seconds: ten years.
	maxSteady = 10 * 366 * 24 * 3600
)

// recordRequest records a request, and adds the time since the previous request to the steady time if the pace is
// steady. The pace is steady if this time and the interval before it differ by at most a factor of two. After more than
// maxInterval without a request, the steady time is 0. mu must be held.
func (x *cursor) recordRequest(now time.Time) {
	interval := now.Sub(x.lastRequest)
	switch {
	case interval > maxInterval:
		x.steady = 0
	case interval <= 2*x.interval && x.interval <= 2*interval:
		x.steady += interval
	}
	x.lastRequest, x.interval = now, interval
}

func newCursors(most int, expiry time.Duration, line *seconds.Line) *cursors {
	began := time.Now()
	c := &cursors{max: most, expiry: expiry, line: line, all: map[scraper]*cursor{}}
	c.order.Kept = fairshare.Kept
	c.order.Used = func(x *cursor) int64 { return int64(x.lastRequest.Sub(began)) }
	return c
}

// get returns the cursor of a scraper at host (see [clientip.Of]) and marks it as used. A new cursor starts with the
// second first.
func (c *cursors) get(who scraper, host string, first int64, now time.Time) *cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.all[who]
	if x != nil {
		x.recordRequest(now)
		if x.entry.Host == host {
			return x
		}
		c.order.Remove(x.entry) // the proxy reports another host
	} else {
		if len(c.all) >= c.max {
			c.evict(host, now)
		}
		x = &cursor{scraper: who, line: c.line, mu: &c.mu, Position: delivery.Position{Next: first}, lastRequest: now}
		c.all[who] = x
	}
	x.entry = c.order.Add(host, 1, x)
	return x
}

// evict removes a cursor in favor of a new one of host. A cursor also loses its steady time when it gets no request for
// maxInterval, so evict visits all cursors. With the default of 100 cursors this delays the first page of a new cursor
// by 4 µs, with 1,000 by 15 µs. mu must be held.
func (c *cursors) evict(host string, now time.Time) {
	for _, x := range c.all {
		steady := x.steady
		if now.Sub(x.lastRequest) > maxInterval {
			steady = 0
		}
		c.order.Rank(x.entry, int64(steady))
	}
	out := c.order.First()
	if c.order.Amount(host) >= max(c.max/4, fairshare.Kept) {
		out = c.order.FirstOf(host)
	}
	c.remove(out.Value)
	c.evicted.Add(1)
}

// remove removes a cursor. mu must be held.
func (c *cursors) remove(x *cursor) {
	c.order.Remove(x.entry)
	delete(c.all, x.scraper)
}

// list returns all cursors in any order. It first removes expired ones, so that metrics do not show the lag of scrapers
// that are gone. A scraper that returns later loses nothing: the history is shorter than the expiry, so the removed
// position was before the history.
func (c *cursors) list() []*cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.all {
		if time.Since(x.lastRequest) > c.expiry {
			c.remove(x)
		}
	}
	return slices.Collect(maps.Values(c.all))
}

// clientHost returns the address of a request's client without the port.
func clientHost(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return cmp.Or(host, r.RemoteAddr) // a Unix socket has no host
}

// metrics returns the metrics of the cursors and of the endpoint's responses. cursor_save_errors_total exists only if
// positions are saved.
func (s *Seconds) metrics() []collector.Metric {
	// Cursors that differ only in their selection share a series: the selection is not a label, because it could be of
	// any length. The series of a counter has the sum of the cursors, and the series of the lag has the longest lag.
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
		metric("cursor_lag_seconds", "Sealed seconds that were not sent to a scraper yet.",
			func(next int64, _ cursorCounts) int64 { return s.line.Count(next, s.line.Open()) }),
		metric("cursor_delivered_seconds_total",
			"Seconds delivered to a scraper. The seconds of a response count with the scraper's next request, "+
				"or immediately if the connection cannot confirm them.",
			func(_ int64, n cursorCounts) int64 { return n.delivered }),
		metric("cursor_unconfirmed_seconds_total",
			"Delivered seconds without proof of receipt, which the database may lack.",
			func(_ int64, n cursorCounts) int64 { return n.unconfirmed }),
		metric("cursor_resent_seconds_total",
			"Seconds sent to a scraper again, because its connection broke after they had been written. "+
				"The database refuses those that it has.",
			func(_ int64, n cursorCounts) int64 { return n.resent }),
		metric("cursor_lost_seconds_total",
			"Seconds that a scraper did not fetch before they left the history, "+
				"or whose names an earlier process had sent.",
			func(_ int64, n cursorCounts) int64 { return n.lost }),
	}
	all = append(all, collector.Metric{
		Name:  "cursor_evictions_total",
		Help:  "Cursors evicted by new ones. The scraper of an evicted cursor gets the whole history again.",
		Value: func() float64 { return float64(s.cursors.evicted.Load()) },
	})
	if s.positions != "" {
		all = append(all, collector.Metric{
			Name: "cursor_save_errors_total",
			Help: "Failures to save the positions of scrapers, or to load them at startup. " +
				"Scrapers get some seconds twice after a restart.",
			Value: func() float64 { return float64(s.saveErrors.Load()) },
		})
	}
	return append(all, s.out.last.metrics()...)
}
