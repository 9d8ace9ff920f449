package collector

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// gate decides which calls of one resource may pass. A call is checked, stamped and counted under mu, and under the lock
// of the stripe that it is recorded in: so the bucket that a quota counts it in is the bucket that it passes in, and no
// other call comes between check and count. The order of locks is mu, statistic: mu is never taken with a statistic's lock
// held. A gate stays, with other rules or none.
type gate struct {
	mu    sync.Mutex
	rules []rule
}

// rule is a limit with the passes that it has counted.
type rule struct {
	Limit
	quota *node.Quota // nil for concurrency, which is read from the statistics
}

// setLimits gives the resource those limits that are for it. Holds the collector's mu.
func (r *Resource) setLimits(all []Limit) {
	var rules []rule
	r.blocks.prune()
	for _, l := range all {
		if l.Matches(r.name) || r.name == Other && l.pattern() {
			rules = append(rules, rule{Limit: l})
			r.blocks.add(l.String(), 0) // so that there is a series before the first block
		}
	}
	if len(rules) == 0 && r.kept == nil {
		return
	}
	if r.kept == nil {
		r.kept = new(gate)
	}
	r.kept.replace(r, rules)
}

// replace replaces the rules. The quotas of the new ones begin with the passes of the last second. Calls wait from before
// those are read, so that none is missed.
func (g *gate) replace(r *Resource, rules []rule) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.gate.Store(g)
	if len(rules) == 0 {
		r.gate.Store(nil)
	}
	now := r.c.line.Now()
	for i := range rules {
		x := &rules[i]
		if x.Grade != QPS {
			continue
		}
		x.quota = node.NewQuota(r.c.shape, x.Count, x.Strict)
		if v := x.view(r); v != nil && x.Matches(r.name) { // and not only some of the names that are counted here
			x.quota.Fill(v, now)
		}
	}
	g.rules = rules
}

// view is the calls that the rule limits: of the resource, or of one of its origins. It is nil for an origin that has not
// called.
func (x *rule) view(r *Resource) *node.View {
	if x.Origin == "" {
		return r.view
	}
	if o := r.origin(x.Origin); o != nil {
		return o.view
	}
	return nil
}

// covers reports whether the rule is for a call: of this origin, and of this name where the resource is for many.
func (x *rule) covers(l *leaf, o *options) bool {
	if x.Origin != "" && x.Origin != l.origin {
		return false
	}
	return l.resource.name != Other || x.Matches(Other) || x.Matches(CleanName(o.name))
}

// enter lets the entry's call pass, or counts it as a block and returns the error. It reports again if the leaf was
// retired in this moment.
func (g *gate) enter(ctx context.Context, e *Entry, o *options) (again bool, err error) {
	l := e.leaf
	c := l.resource.c
	var arrived leap.Reading
	if o.prioritized {
		arrived = c.line.Now()
	}
	loan, by, reading := g.admit(e, o)
	var cancelled error
	if loan != nil {
		if cancelled = g.wait(ctx, e, o, loan, arrived); cancelled == nil {
			return false, nil
		}
	}
	if !e.call.IsZero() {
		return false, nil
	}
	if by == nil {
		return true, nil
	}
	reason := by.String()
	if cancelled != nil {
		reason = Cancelled
	}
	if !l.block(reason, o.n) {
		return true, nil
	}
	return false, &BlockedError{Limit: *by, Resource: l.resource.name, Origin: l.origin, Reading: reading, Cancelled: cancelled}
}

// admit checks and counts the call in one step. For a refused call it returns the limit and its reading; for one that may
// wait instead, a loan, too.
func (g *gate) admit(e *Entry, o *options) (*loan, *Limit, int64) {
	l := e.leaf
	g.mu.Lock()
	defer g.mu.Unlock()
	now := l.resource.c.line.Now()
	var by *Limit
	var reading int64
	if !o.admitted {
		if by, reading = g.concurrency(l, o, now); by != nil {
			return nil, by, reading
		}
	}
	var at time.Duration
	e.call, _ = l.EnterIf(now, o.n, func(bucket time.Duration) bool {
		at = bucket
		for i := range g.rules {
			if x := &g.rules[i]; !o.admitted && x.quota != nil && x.covers(l, o) && !x.quota.CanPass(bucket, o.n) {
				limit := x.Limit
				by, reading = &limit, x.quota.Passes(bucket)
				return false
			}
		}
		for i := range g.rules {
			if x := &g.rules[i]; x.quota != nil && x.covers(l, o) {
				x.quota.Pass(bucket, o.n)
			}
		}
		return true
	})
	if by != nil && o.prioritized {
		return g.borrow(l, o, now, at), by, reading
	}
	return nil, by, reading
}

// concurrency returns the limit on calls in flight that has no room for one more, nil if all have. Exits in between make
// the reading too high, never too low, and calls that enter wait for mu.
func (g *gate) concurrency(l *leaf, o *options, now leap.Reading) (*Limit, int64) {
	for i := range g.rules {
		x := &g.rules[i]
		if x.Grade != Concurrency || !x.covers(l, o) {
			continue
		}
		v := x.view(l.resource)
		if v == nil {
			continue // the leaf was retired in this moment, as EnterIf will find
		}
		flying, _ := v.Waiting(now) // before InFlight
		if flying += v.InFlight(); flying >= x.Count {
			limit := x.Limit
			return &limit, flying
		}
	}
	return nil, 0
}

// loan is a borrowed pass, with the rules that lent it.
type loan struct {
	node.Loan
	bucket time.Duration
	n      int64
}

// borrow finds a bucket in which all rules have room, and borrows from it; nil if there is none. Holds mu.
func (g *gate) borrow(l *leaf, o *options, now leap.Reading, at time.Duration) *loan {
	bucket := at
	for again := true; again; {
		again = false
		for i := range g.rules {
			x := &g.rules[i]
			if x.quota == nil || !x.covers(l, o) {
				continue
			}
			next, ok := x.quota.TryOccupyNext(at, bucket, o.n)
			if !ok {
				return nil
			}
			again = again || next > bucket
			bucket = next
		}
	}
	if l.resource.c.until(now, bucket) > node.OccupyTimeout {
		return nil
	}
	borrowed, ok := l.Occupy(now, bucket, o.n)
	if !ok {
		return nil
	}
	for i := range g.rules {
		if x := &g.rules[i]; x.quota != nil && x.covers(l, o) {
			x.quota.Borrow(bucket, o.n)
		}
	}
	return &loan{Loan: borrowed, bucket: bucket, n: o.n}
}

// until is how long it is from the reading now until the bucket begins.
func (c *Collector) until(now leap.Reading, bucket time.Duration) time.Duration {
	return c.line.At(now).Reading(bucket).Sub(now)
}

// errClock ends the wait of a call whose clock stands still.
var errClock = errors.New("collector: the clock does not reach the next bucket")

// wait waits until the bucket begins that the call borrowed from, or gives it back when ctx ends, and returns ctx's error.
func (g *gate) wait(ctx context.Context, e *Entry, o *options, b *loan, arrived leap.Reading) error {
	l := e.leaf
	c := l.resource.c
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
		reason := errClock
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
			reason = context.Cause(ctx)
		case <-maxWait.C:
		}
		timer.Stop()
		g.mu.Lock()
		given := b.Cancel(c.line.Now())
		if given {
			for i := range g.rules {
				if x := &g.rules[i]; x.quota != nil && x.covers(l, o) {
					x.quota.GiveBack(b.bucket, b.n)
				}
			}
		}
		g.mu.Unlock()
		if given {
			return reason
		}
	}
}
