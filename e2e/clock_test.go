package e2e

import (
	"sync/atomic"
	"time"
)

// A clock shows a time that the test sets.
type clock struct{ nanoseconds atomic.Int64 }

func newClock(at time.Time) *clock {
	c := &clock{}
	c.set(at)
	return c
}

func (c *clock) set(at time.Time) { c.nanoseconds.Store(at.UnixNano()) }

func (c *clock) now() time.Time { return time.Unix(0, c.nanoseconds.Load()) }
