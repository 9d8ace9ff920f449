package collector

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// gate decides which calls of one resource may pass. A call is checked, stamped and counted under the locks of its
// limiters, and under the lock of the stripe that it is recorded in: so the bucket that a quota counts it in is the bucket
// that it passes in, and no other call comes between check and count. The order of locks is limiter, statistic: a limiter's
// lock is never taken with a statistic's held. A gate stays, with other rules or none.
//
// Nothing is read from leaves when a call is decided about, so the cost does not depend on how many origins there are.
type gate struct {
	own   []*limiter // the one of the resource
	names *names     // those of the names that are counted here; nil for a resource that counts for no other
}

// setLimits gives the resource its limits: those in force that are for its name, see [ruleSet.forName]. Holds the collector's mu.
func (r *Resource) setLimits(limits []Limit) {
	shared, rules := r.shared.Load(), limits
	if shared { // patterns are for each name by itself, the resource's own included
		rules = filter(limits, func(l Limit) bool { return !l.pattern() })
		limits = filter(r.c.limits.Load().list, func(l Limit) bool { return l.pattern() || l.Resource == r.name })
	}
	r.blocks.prune()
	for _, l := range limits {
		r.blocks.add(l.String(), 0) // so that there is a series before the first block
	}
	if len(limits) == 0 && r.kept == nil {
		return
	}
	if r.kept == nil {
		r.kept = &gate{own: []*limiter{{}}}
	}
	if shared && r.kept.names == nil {
		r.kept = &gate{own: r.kept.own, names: r.c.names}
	}
	r.kept.replace(r, rules, len(limits) > 0)
}

// share makes the resource one that counts calls of other names.
func (c *Collector) share(r *Resource) {
	if r.shared.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.shared.Load() && !r.dead.Load() {
		r.shared.Store(true)
		r.setLimits(c.limits.Load().forName(r.name))
	}
}

// replace replaces the rules of the resource. What the old ones did not count is read from its leaves. Calls wait from
// before those are read, so that none is missed.
func (g *gate) replace(r *Resource, rules []Limit, limited bool) {
	own := g.own[0]
	own.mu.Lock()
	defer own.mu.Unlock()
	if r.gate.Store(g); !limited {
		r.gate.Store(nil)
	}
	now := r.c.line.Now()
	own.set(rules, func(origin string, x *meter) *node.Quota {
		q := node.NewQuota(r.c.shape, 0, true)
		if origin == "" {
			q.Fill(r.view, now)
		} else if o := r.origin(origin); o != nil {
			q.Fill(o.view, now)
		}
		if x.before != nil {
			q.Add(x.before)
		}
		return q
	})
	for _, t := range r.treeNodes() {
		for _, l := range t.listLeaves() {
			l.SetCounters(own.counters(l.origin)...)
		}
	}
}

// attach makes a new leaf count its calls in flight. Holds the collector's mu.
func (g *gate) attach(l *leaf) {
	own := g.own[0]
	own.mu.Lock()
	defer own.mu.Unlock()
	l.SetCounters(own.counters(l.origin)...)
}

// busy reports whether calls are in flight that count for the resource and not for its leaves.
func (g *gate) busy() bool { return g != nil && g.own[0].all.inFlight.Load() > 0 }

// reserve finds the limiters of a call that the leaf counts under another name, nil if there are none; or it returns errMoved.
func (g *gate) reserve(o *options, l *leaf) (*reservation, error) {
	if g.names == nil {
		return nil, nil
	}
	return g.names.reserve(CleanName(o.name), l)
}

// enter lets the entry's call pass, or counts it as a block and returns a [BlockedError], or it returns errMoved.
func (g *gate) enter(ctx context.Context, e *Entry, o *options) error {
	if g.names != nil {
		return g.enterNamed(ctx, e, o)
	}
	return g.decide(ctx, e, o)
}

// enterNamed is enter where the call may count under another name.
func (g *gate) enterNamed(ctx context.Context, e *Entry, o *options) error {
	r, err := g.reserve(o, e.at.leaf)
	if err != nil {
		return err
	}
	if r == nil { // no pattern is for the name
		return g.decide(ctx, e, o)
	}
	e.at = &r.place
	defer func() {
		if e.call.IsZero() {
			r.release()
		} else {
			e.call.Mark()
		}
	}()
	return g.decide(ctx, e, o)
}

// resume counts a call in flight that has passed elsewhere.
func (g *gate) resume(e *Entry, o *options) {
	if r, _ := g.reserve(o, e.at.leaf); r != nil { // otherwise its leaf counts it
		r.lock()
		r.take()
		unlock(r.list)
		e.at = &r.place
		e.call.Mark()
	}
}

// lock locks the limiters that decide about a call, and returns them.
func (g *gate) lock(r *reservation) []*limiter {
	g.own[0].mu.Lock()
	if r == nil {
		return g.own
	}
	r.lock()
	return append(append(r.all[:0], g.own...), r.list...)
}

func unlock(list []*limiter) {
	for _, m := range list {
		m.mu.Unlock()
	}
}

// decide is enter for a call with its reservation, if it needs one.
func (g *gate) decide(ctx context.Context, e *Entry, o *options) error {
	l := e.at.leaf
	var arrived leap.Reading
	if o.prioritized {
		arrived = l.resource.c.line.Now()
	}
	loan, refused := g.admit(e, o)
	if loan != nil {
		if refused.Cancelled = g.wait(ctx, e, loan, arrived); refused.Cancelled == nil {
			return nil
		}
	}
	if refused == nil {
		if e.call.IsZero() {
			return errMoved
		}
		return nil
	}
	reason := refused.Limit.String()
	if refused.Cancelled != nil {
		reason = Cancelled
	}
	if err := l.block(reason, o.n); err != nil {
		return err
	}
	refused.Resource, refused.Origin = l.resource.name, l.origin
	return refused
}

// admit checks and counts the call in one step. For a refused call it returns why; for one that may wait instead, a loan, too.
func (g *gate) admit(e *Entry, o *options) (*loan, *BlockedError) {
	l := e.at.leaf
	list := g.lock(e.at.reserved)
	now := l.resource.c.line.Now()
	bucket := l.Hold(now)
	if bucket.IsZero() {
		unlock(list)
		return nil, nil
	}
	at := bucket.At()
	var loan *loan
	refused := check(list, at, o, l.origin)
	if refused == nil {
		e.at.reserved.take()
		for _, m := range list {
			m.pass(at, o.n, l.origin)
		}
		e.call = bucket.Enter(o.n)
	} else if bucket.Release(); o.prioritized && refused.Limit.Grade == QPS {
		loan = g.borrow(e, o, list, now, at)
	}
	unlock(list)
	return loan, refused
}

// check returns why limiters refuse a call, nil if they do not. Those on concurrency come first, because a call that these refuse
// must not wait. Holds their locks.
func check(list []*limiter, bucket time.Duration, o *options, origin string) *BlockedError {
	if o.admitted {
		return nil
	}
	for _, m := range list {
		if refused := m.full(origin); refused != nil {
			return refused
		}
	}
	for _, m := range list {
		if refused := m.exceeded(bucket, o.n, origin); refused != nil {
			return refused
		}
	}
	return nil
}

// loan is a borrowed pass.
type loan struct {
	node.Loan
	bucket time.Duration
	n      int64
}

// borrow finds a bucket in which all rules have room, and borrows from it; nil if there is none. Holds the limiters' locks.
func (g *gate) borrow(e *Entry, o *options, list []*limiter, now leap.Reading, at time.Duration) *loan {
	l, bucket := e.at.leaf, at
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
	e.at.reserved.take()
	for _, m := range list {
		m.count(l.origin, func(q *node.Quota) { q.Borrow(at, bucket, o.n) })
	}
	return &loan{Loan: borrowed, bucket: bucket, n: o.n}
}

// cancel gives a loan back, and reports whether it did. If it does not, the loan has passed.
func (g *gate) cancel(e *Entry, b *loan) bool {
	l, list := e.at.leaf, g.lock(e.at.reserved)
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
func (g *gate) wait(ctx context.Context, e *Entry, b *loan, arrived leap.Reading) error {
	c := e.at.leaf.resource.c
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
		if g.cancel(e, b) {
			return cmp.Or(reason(), context.Canceled) // asked only now: a context of somebody's own may panic, or not know
		}
	}
}
