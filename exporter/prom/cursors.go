package prom

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// cursors are the cursors of all scrapers, at most max.
type cursors struct {
	max int

	mu  sync.Mutex
	all map[scraper]*cursor
}

// cursorExpiry is how long an unused cursor is kept when there is no room for another.
const cursorExpiry = time.Hour

var errTooManyCursors = errors.New("too many cursors; one that is unused for an hour makes room")

// get returns a scraper's cursor. A new one begins with the second first.
func (c *cursors) get(who scraper, first int64, now time.Time) (*cursor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.all[who]; x != nil {
		x.mu.Lock()
		x.used = now
		x.mu.Unlock()
		return x, nil
	}
	if len(c.all) >= c.max {
		c.expire(now)
	}
	if len(c.all) >= c.max {
		return nil, errTooManyCursors
	}
	x := newCursor(who, first, now)
	c.all[who] = x
	return x, nil
}

// expire removes the cursors that were not used for [cursorExpiry]. Holds mu.
func (c *cursors) expire(now time.Time) {
	for who, x := range c.all {
		x.mu.Lock()
		idle := now.Sub(x.used)
		x.mu.Unlock()
		if idle > cursorExpiry {
			delete(c.all, who)
		}
	}
}

// list returns all cursors, in no order.
func (c *cursors) list() (list []*cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.all {
		list = append(list, x)
	}
	return list
}

// clientHost returns the address of a request's client, without the port.
func clientHost(r *http.Request) string {
	h, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return h
}
