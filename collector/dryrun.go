package collector

import (
	"iter"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// The dry runs for a name are a second set of quotas of its limiter. They decide about each call that the limits let pass, as limits do, so
// that a call that they would refuse uses nothing of theirs up. It passes all the same, and the leaf counts it in flight; so they count
// which of the calls in flight they would have refused.

// dryCount is what a resource's dry runs would have refused for one reason: the blocks of a statistic, which has its seconds.
type dryCount struct {
	stat *node.Statistic // nil until the first call
	*generation
}

// judge lets the dry runs decide about a call in the bucket at, and returns why they would refuse it, nil if they would not: then
// its pass counts for them, in the bucket that it would have waited for if it is prioritized. Waiting is as in [quotas.full]. A call that
// is in flight and would have been refused gets a reservation. Holds the limiters' locks.
func judge(list []*limiter, e *Entry, o *options, now leap.Reading, at time.Duration, waiting int64) *BlockedError {
	if !slices.ContainsFunc(list, func(m *limiter) bool { return m.dry.any() }) {
		return nil
	}
	l := e.at.leaf
	refused := check(list, true, at, o, l.origin, waiting)
	if refused == nil {
		update(list, true, l.origin, func(q *node.Quota) { q.Pass(at, o.n) })
		return nil
	}
	if o.prioritized && refused.Limit.Grade == QPS {
		if bucket, ok := lender(l.resource.c, list, true, now, at, o.n, l.origin); ok {
			update(list, true, l.origin, func(q *node.Quota) { q.Borrow(at, bucket, o.n) })
			return nil
		}
	}
	e.refuse(list)
	return refused
}

// refuse counts the call among those in flight that dry runs would have refused, until it ends.
func (e *Entry) refuse(list []*limiter) {
	l := e.at.leaf
	if e.at.reserved == nil {
		r := &reservation{list: list, taken: true}
		r.place = place{leaf: l, reserved: r}
		e.at = &r.place
	}
	e.at.reserved.refused = true
	for _, m := range list {
		m.dry.enter(l.origin)
	}
}

// arrive lets the dry runs decide about a call that has waited for its bucket.
func arrive(e *Entry, o *options, list []*limiter) {
	_ = lock(list) // none is dropped: the call counts in them
	defer unlock(list)
	l := e.at.leaf
	now := l.resource.c.line.Now()
	bucket := l.Hold(now)
	at := bucket.At()
	bucket.Release()
	if refused := judge(list, e, o, now, at, 1); refused != nil {
		list[0].countDry(e, refused, now, o.n)
	}
}

// countDry counts n calls that a dry run would have refused, and have entered as e. The limiter is that of the resource.
func (m *limiter) countDry(e *Entry, refused *BlockedError, now leap.Reading, n int64) {
	e.call.SetNote(reserved)
	x := getOrAdd(&m.dryCounts, refused.Limit.String())
	if c := m.c; x.stat == nil {
		// No reader has been handed out the second that is open here, and those that list the dry runs from now on find this one.
		began := c.line.Now()
		x.stat, x.generation = node.New(c.shape, began), &generation{c: c, view: node.NewView(c.shape, began)}
		x.view.Add(x.stat)
	}
	x.stat.Block(now, n)
}

// dryCounts is a copy of the counts.
func (r *Resource) dryCounts() []labelled[dryCount] {
	m := r.kept.Load()
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.dryCounts)
}

// dryRun is what was counted for a reason, nil if there is nothing.
func (r *Resource) dryRun(reason string) *generation {
	for _, x := range r.dryCounts() {
		if x.value == reason && r.alive() {
			return x.of.generation
		}
	}
	return nil
}

// DryRuns iterates over the dry runs of the resource by reason, the name of the limit, each with a View of the calls that it would
// have refused: they are its blocks, in total, in windows and in seconds, and all else of it is idle. There are at most 16
// reasons; [Other] is for all further ones. Those that have refused nothing are there while their limit is set. It takes the lock that limited
// calls take, for as long as it copies the list.
func (r *Resource) DryRuns() iter.Seq2[string, View] {
	return func(yield func(string, View) bool) {
		if r == nil {
			return
		}
		r := r.now()
		for _, x := range r.dryCounts() {
			if !yield(x.value, r.c.absent(func() *generation { return r.now().dryRun(x.value) })) {
				return
			}
		}
	}
}
