package prom

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// cursors are the cursors of all scrapers, at most max. A new one always gets in. When there are max already, it takes the place of
// the cursor that was asked for often and at a steady pace for the shortest time. For made-up names that is no time at all: then
// one of the host with the most goes, and there the one that was unused for the longest. So a scraper that has come for an hour
// outlives all that have come for less, whether strangers come from one address or from a thousand. A host that has a quarter
// of all cursors makes room itself, so no single one keeps new scrapers out.
type cursors struct {
	max  int
	line *seconds.Line

	mu      sync.Mutex
	all     map[scraper]*cursor
	evicted int64
}

const (
	// often is the longest time between two requests that counts as often.
	often = 10 * time.Minute
	// minShare is how many cursors count as few for a host.
	minShare = 2
	// maxSteady bounds what a file may say, in seconds: ten years.
	maxSteady = 10 * 366 * 24 * 3600
)

// asked records a request. Two in a row are of a steady pace if they are about as far apart as the two before. It needs the
// mutex of cursors.
func (x *cursor) asked(host string, now time.Time) {
	gap := now.Sub(x.used)
	switch {
	case gap > often:
		x.steady = 0
	case gap <= 2*x.gap && x.gap <= 2*gap:
		x.steady += gap
	}
	x.host, x.used, x.gap = host, now, gap
}

// get returns a scraper's cursor, which is used now, by a host as in [clientip.Of]. A new one begins with the second first.
func (c *cursors) get(who scraper, host string, first int64, now time.Time) *cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.all[who]
	if x != nil {
		x.asked(host, now)
		return x
	}
	if len(c.all) >= c.max {
		c.evict(host, now)
	}
	x = newCursor(c.line, who, first, now)
	x.host = host
	c.all[who] = x
	return x
}

// evict removes a cursor, for one of a host. Holds mu.
func (c *cursors) evict(host string, now time.Time) {
	hosts := map[string]int{}
	for _, x := range c.all {
		hosts[x.host]++
	}
	own := hosts[host] >= max(c.max/4, minShare)
	steady := func(x *cursor) time.Duration {
		if now.Sub(x.used) > often {
			return 0
		}
		return x.steady
	}
	var out *cursor
	for _, x := range c.all {
		if own && x.host != host {
			continue
		}
		if out == nil || cmp.Or(
			cmp.Compare(steady(x), steady(out)),
			cmp.Compare(max(hosts[out.host], minShare), max(hosts[x.host], minShare)),
			x.used.Compare(out.used),
		) < 0 {
			out = x
		}
	}
	delete(c.all, out.scraper)
	c.evicted++
}

// use returns when a cursor was asked for last, and for how long it has been at a steady pace.
func (c *cursors) use(x *cursor) (last time.Time, steady time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return x.used, x.steady
}

// list returns all cursors, in no order.
func (c *cursors) list() []*cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.all))
}

// evictions returns how many cursors were removed to make room.
func (c *cursors) evictions() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evicted
}

// clientHost returns the address of a request's client, without the port.
func clientHost(r *http.Request) string {
	h, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return h
}
