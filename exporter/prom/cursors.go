package prom

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// cursors are the cursors of all scrapers, at most max. A new one always gets in: when there is no room, one of the host that
// has the most goes, but of a host with two or fewer only if no host has more. There it is the one that was unused for the
// longest, but one in regular use only if all are. So made-up names cost other hosts nothing, and their own host only
// scrapers that are as new as they are.
type cursors struct {
	max int

	mu      sync.Mutex
	all     map[scraper]*cursor
	evicted int64
}

// regular is how long a cursor that was used more than once counts as in regular use.
const regular = 10 * time.Minute

// get returns a scraper's cursor, which is used now, by a host as in [clienthost.Of]. A new one begins with the second first.
func (c *cursors) get(who scraper, host string, first int64, now time.Time) *cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.all[who]
	if x != nil {
		x.host, x.used, x.again = host, now, true
		return x
	}
	if len(c.all) >= c.max {
		c.evict(now)
	}
	x = newCursor(who, first, now)
	x.host = host
	c.all[who] = x
	return x
}

// evict removes a cursor. Holds mu.
func (c *cursors) evict(now time.Time) {
	const kept = 2 // cursors that any host may have
	hosts := map[string]int{}
	for _, x := range c.all {
		hosts[x.host]++
	}
	order := func(a, b *cursor) int {
		return cmp.Or(
			cmp.Compare(max(hosts[b.host], kept), max(hosts[a.host], kept)),
			cmp.Compare(a.regular(now), b.regular(now)),
			a.used.Compare(b.used),
		)
	}
	x := slices.MinFunc(slices.Collect(maps.Values(c.all)), order)
	delete(c.all, x.scraper)
	c.evicted++
}

// positions returns what there is to save. The positions saved are guarded by the caller.
func (c *cursors) positions() (list []position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.all {
		if x.saved != 0 {
			list = append(list, position{x.scraper, x.saved, x.used.Unix()})
		}
	}
	return list
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
