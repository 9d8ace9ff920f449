package collector

import (
	"context"
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
	own.set(rules, func(origin string) *node.Quota {
		q := node.NewQuota(r.c.shape, 0, true)
		if origin == "" {
			q.Fill(r.view, now)
		} else if o := r.origin(origin); o != nil {
			q.Fill(o.view, now)
		}
		return q
	})
	for _, t := range r.treeNodes() {
		for _, l := range t.listLeaves() {
			l.Tell(own.counters(l.origin)...)
		}
	}
}

// attach makes a new leaf tell of its calls in flight. Holds the collector's mu.
func (g *gate) attach(l *leaf) {
	own := g.own[0]
	own.mu.Lock()
	defer own.mu.Unlock()
	l.Tell(own.counters(l.origin)...)
}

// busy reports whether calls are in flight that count for the resource and not for its leaves.
func (g *gate) busy() bool { return g != nil && g.own[0].all.inFlight.Load() > 0 }

// enter lets the entry's call pass, or counts it as a block and returns the error. It reports again if the leaf was
// retired in this moment, or the call belongs to another resource now.
func (g *gate) enter(ctx context.Context, e *Entry, o *options) (again bool, err error) {
	if g.names == nil {
		return g.decide(ctx, e, o, nil)
	}
	p, ok := g.names.acquire(CleanName(o.name), e.leaf)
	if !ok {
		return true, nil
	}
	if p == nil {
		return g.decide(ctx, e, o, nil)
	}
	defer func() {
		if e.call.IsZero() {
			p.release()
		}
	}()
	if again, err = g.decide(ctx, e, o, p); !e.call.IsZero() {
		p.attach(e)
	}
	return again, err
}

// resume counts a call in flight that has passed elsewhere.
func (g *gate) resume(e *Entry, o *options) {
	if g.names == nil {
		return // its leaf tells
	}
	if p, _ := g.names.acquire(CleanName(o.name), e.leaf); p != nil {
		p.lock()
		p.take()
		unlock(p.list)
		p.attach(e)
	}
}

// lock locks the limiters that decide about a call, and returns them.
func (g *gate) lock(p *permit) []*limiter {
	g.own[0].mu.Lock()
	if p == nil {
		return g.own
	}
	p.lock()
	return append(append(p.all[:0], g.own...), p.list...)
}

func unlock(list []*limiter) {
	for _, m := range list {
		m.mu.Unlock()
	}
}

// decide is enter for a call with a permit, nil if it needs none.
func (g *gate) decide(ctx context.Context, e *Entry, o *options, p *permit) (again bool, err error) {
	l := e.leaf
	c := l.resource.c
	var arrived leap.Reading
	if o.prioritized {
		arrived = c.line.Now()
	}
	loan, by, reading := g.admit(e, o, p)
	var cancelled error
	if loan != nil {
		if cancelled = g.wait(ctx, e, p, loan, arrived); cancelled == nil {
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
func (g *gate) admit(e *Entry, o *options, p *permit) (*loan, *Limit, int64) {
	l := e.leaf
	list := g.lock(p)
	defer unlock(list)
	now := l.resource.c.line.Now()
	var by *Limit
	var reading int64
	if !o.admitted {
		for _, m := range list {
			if by, reading = m.full(l.origin); by != nil {
				return nil, by, reading
			}
		}
	}
	var at time.Duration
	e.call, _ = l.EnterIf(now, o.n, func(bucket time.Duration) bool {
		at = bucket
		for _, m := range list {
			if o.admitted {
				break
			}
			if by, reading = m.exceeded(bucket, o.n, l.origin); by != nil {
				return false
			}
		}
		if p != nil {
			p.take()
		}
		for _, m := range list {
			m.pass(bucket, o.n, l.origin)
		}
		return true
	})
	if by != nil && o.prioritized {
		return g.borrow(l, o, p, list, now, at), by, reading
	}
	return nil, by, reading
}
