package prom

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// cursors are those of all readers.
type cursors struct {
	max int

	mu  sync.Mutex
	all map[reader]*cursor
}

// cursorExpiry is how long a cursor is kept that nobody uses.
const cursorExpiry = time.Hour

var errTooManyCursors = errors.New("there are too many cursors; one that is not used any more makes room after an hour")

// get finds a reader's cursor, or makes one that begins with the second first.
func (c *cursors) get(who reader, first int64, now time.Time) (*cursor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.all[who]; x != nil {
		x.mu.Lock()
		x.used = now
		x.mu.Unlock()
		return x, nil
	}
	if len(c.all) >= c.max {
		c.drop(now)
	}
	if len(c.all) >= c.max {
		return nil, errTooManyCursors
	}
	x := newCursor(who, first, now)
	c.all[who] = x
	return x, nil
}

// drop forgets the cursors that were not used for long. Holds mu.
func (c *cursors) drop(now time.Time) {
	for who, x := range c.all {
		x.mu.Lock()
		idle := now.Sub(x.used)
		x.mu.Unlock()
		if idle > cursorExpiry {
			delete(c.all, who)
		}
	}
}

// list is all cursors there are.
func (c *cursors) list() (list []*cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.all {
		list = append(list, x)
	}
	return list
}

// host is where a request comes from, without the port.
func host(r *http.Request) string {
	h, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return h
}
