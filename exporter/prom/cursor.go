package prom

import (
	"context"
	"errors"
	"sync"
	"time"
)

// cursor is how far one reader has read.
type cursor struct {
	name, host string

	turn chan struct{} // who has it serves the reader: one request at a time

	mu        sync.Mutex // guards what follows
	next      int64      // the first second that the reader has not had
	used      time.Time
	delivered int64 // seconds
	lost      int64 // seconds that were dropped from the history before the reader came for them
}

// cursors are those of all readers, by name, host and what they ask for.
type cursors struct {
	max    int
	expire time.Duration

	mu  sync.Mutex
	all map[string]*cursor
}

var errTooManyCursors = errors.New("there are too many cursors; one that is not used any more makes room after an hour")

// get finds a reader's cursor, or makes one that begins with the second first.
func (c *cursors) get(name, host, filters string, first int64, now time.Time) (*cursor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := name + "\x00" + host + "\x00" + filters
	if x := c.all[key]; x != nil {
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
	x := &cursor{name: name, host: host, turn: make(chan struct{}, 1), next: first, used: now}
	c.all[key] = x
	return x, nil
}

// drop forgets the cursors that were not used for long. Holds mu.
func (c *cursors) drop(now time.Time) {
	for key, x := range c.all {
		x.mu.Lock()
		idle := now.Sub(x.used)
		x.mu.Unlock()
		if idle > c.expire {
			delete(c.all, key)
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

// wait waits for the reader's turn, until its request ends.
func (x *cursor) wait(ctx context.Context) error {
	select {
	case x.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *cursor) done() { <-x.turn }

// from is where the next answer begins, when the oldest second there is has the index oldest. What was dropped before is
// lost for the reader.
func (x *cursor) from(oldest int64) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.next < oldest {
		x.lost += oldest - x.next
		x.next = oldest
	}
	return x.next
}

// read says that the reader has had all seconds before to.
func (x *cursor) read(to int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.delivered += max(to-x.next, 0)
	x.next = max(x.next, to)
}
