package collector

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// loan is a borrowed pass.
type loan struct {
	node.Loan
	bucket time.Duration
	n      int64
}

// borrow finds a bucket in which all rules have room, and borrows from it; nil if there is none. Holds the limiters' locks.
func (g *gate) borrow(l *leaf, o *options, p *permit, list []*limiter, now leap.Reading, at time.Duration) *loan {
	bucket := at
	for last := bucket - 1; last != bucket; {
		last = bucket
		for _, m := range list {
			var ok bool
			if bucket, ok = m.lender(at, bucket, o.n, l.origin); !ok {
				return nil
			}
		}
	}
	if l.resource.c.until(now, bucket) > node.OccupyTimeout {
		return nil
	}
	borrowed, ok := l.Occupy(now, bucket, o.n)
	if !ok {
		return nil
	}
	if p != nil {
		p.take()
	}
	for _, m := range list {
		m.count(l.origin, func(q *node.Quota) {
			q.Waiting(at) // so that it knows the bucket, though no rule has asked it
			q.Borrow(bucket, o.n)
		})
	}
	return &loan{Loan: borrowed, bucket: bucket, n: o.n}
}

// cancel gives a loan back, and reports whether it did. If it does not, the loan has passed.
func (g *gate) cancel(l *leaf, p *permit, b *loan) bool {
	list := g.lock(p)
	defer unlock(list)
	if !b.Cancel(l.resource.c.line.Now()) {
		return false
	}
	for _, m := range list {
		m.count(l.origin, func(q *node.Quota) { q.GiveBack(b.bucket, b.n) })
	}
	return true
}

// until is how long it is from the reading now until the bucket begins.
func (c *Collector) until(now leap.Reading, bucket time.Duration) time.Duration {
	return c.line.At(now).Reading(bucket).Sub(now)
}

// errClock ends the wait of a call whose clock stands still.
var errClock = errors.New("collector: the clock does not reach the next bucket")

// wait waits until the bucket begins that the call borrowed from, or gives it back when ctx ends, and returns ctx's error.
func (g *gate) wait(ctx context.Context, e *Entry, p *permit, b *loan, arrived leap.Reading) error {
	c := e.leaf.resource.c
	// [Options].Now may stand still; no call waits for it for ever.
	maxWait := time.NewTimer(2 * node.OccupyTimeout)
	defer maxWait.Stop()
	for {
		now := c.line.Now()
		var ok bool
		if e.call, ok = b.Call(now, arrived); ok {
			return nil
		}
		timer := time.NewTimer(max(c.until(now, b.bucket), time.Millisecond))
		reason := func() error { return errClock }
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
			reason = func() error { return context.Cause(ctx) }
		case <-maxWait.C:
		}
		timer.Stop()
		if g.cancel(e.leaf, p, b) {
			return cmp.Or(reason(), context.Canceled) // asked only now: a context of somebody's own may panic, or not know
		}
	}
}
