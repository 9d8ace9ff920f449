package collector

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// A call under limits is checked, stamped and counted under the locks of its limiters, and under the lock of the stripe that it is
// recorded in: so the bucket that a quota counts it in is the bucket that it passes in, and no other call comes between check and
// count. The limiters are that of the resource, and those of the name where the resource counts it for another one. The order of
// locks is limiters, statistic: a limiter's lock is never taken with a statistic's held.
//
// Nothing is read from leaves when a call is decided about, so the cost does not depend on how many origins there are.

// reservation is what a call holds that is counted under another name than its own, or that a dry run would have refused: the limiters
// that count it, from when it is decided about until it ends.
type reservation struct {
	place
	list    []*limiter  // the first is the resource's, whose leaf counts the call in flight
	array   [2]*limiter // of the list
	taken   bool        // the others count the call in flight
	refused bool        // a dry run would have refused the call
}

// reserve finds the limiters of a call, and its reservation, nil if it needs none. It returns errMoved if the name has a resource of
// its own by now, which the call must go to.
func (m *limiter) reserve(o *options, l *leaf) ([]*limiter, *reservation, error) {
	if !l.resource.shared.Load() {
		return m.alone[:], nil, nil
	}
	r, err := m.c.names.reserve(CleanName(o.name), l, m)
	if r == nil { // no pattern is for the name
		return m.alone[:], nil, err
	}
	return r.list, r, nil
}

// lock locks limiters, in their order. It returns errMoved, and locks none, if one was dropped.
func lock(list []*limiter) error {
	for i, m := range list {
		m.mu.Lock()
		if m.dropped {
			unlock(list[:i+1])
			return errMoved
		}
		if m.name != "" {
			m.refresh()
		}
	}
	return nil
}

func unlock(list []*limiter) {
	for _, m := range list {
		m.mu.Unlock()
	}
}

// count counts n passes in a bucket. Holds the limiters' locks.
func count(list []*limiter, bucket time.Duration, n int64, r *reservation, origin string) {
	r.take()
	for _, m := range list {
		m.pass(bucket, n, origin)
	}
}

// take counts the call in flight. Holds the limiters' locks.
func (r *reservation) take() {
	if r == nil {
		return
	}
	r.taken = true
	for _, m := range r.list[1:] {
		m.take(r.leaf.origin)
	}
}

// end ends a call in flight, and returns how many completions were counted.
func (r *reservation) end(call *node.Call, failed bool, code node.Code) (n int64) {
	if !r.refused {
		if n = call.End(failed, code); n > 0 {
			r.release()
		}
		return n
	}
	// No dry run may see one call less in flight before it sees one less of those that it would have refused.
	if lock(r.list) != nil {
		return 0 // it is over
	}
	defer unlock(r.list)
	if n = call.End(failed, code); n > 0 {
		for i, m := range r.list {
			if m.dry.leave(r.leaf.origin); i > 0 {
				m.leave(r.leaf.origin)
			}
		}
	}
	return n
}

// release ends a call: in flight, cancelled while it waited, or refused.
func (r *reservation) release() {
	switch {
	case r == nil:
		return
	case !r.taken:
		r.leaf.resource.c.names.dropUnused(r.list[1])
		return
	}
	for _, m := range r.list[1:] {
		m.mu.Lock()
		m.leave(r.leaf.origin)
		m.mu.Unlock()
	}
}

// admit lets the entry's call pass, or counts it as a block and returns a [BlockedError], or it returns errMoved.
func (m *limiter) admit(ctx context.Context, e *Entry, o *options) error {
	list, r, err := m.reserve(o, e.at.leaf)
	if err != nil {
		return err
	}
	if r != nil {
		e.at = &r.place
		defer func() {
			if e.call.IsZero() {
				r.release()
			} else {
				e.call.SetNote(reserved)
			}
		}()
	}
	return decide(ctx, e, o, list)
}

// decide is admit with the limiters of the call.
func decide(ctx context.Context, e *Entry, o *options, list []*limiter) error {
	loan, refused, err := try(e, o, list)
	if loan != nil {
		if refused.Cancelled = loan.wait(ctx, e, list); refused.Cancelled == nil {
			arrive(e, o, list)
			return nil
		}
	}
	if refused == nil {
		return err
	}
	reason := refused.Limit.String()
	if refused.Cancelled != nil {
		reason = Cancelled
	}
	l := e.at.leaf
	if err := l.block(reason, o.n); err != nil {
		return err
	}
	refused.Resource, refused.Origin = l.resource.name, l.origin
	return refused
}

// try checks and counts the call in one step. For a refused call it returns why; for one that may wait instead, a loan, too.
func try(e *Entry, o *options, list []*limiter) (*loan, *BlockedError, error) {
	if err := lock(list); err != nil {
		return nil, nil, err
	}
	l := e.at.leaf
	now := l.resource.c.line.Now()
	if o.passed { // elsewhere, so that it is in flight here, and no limit asks about it
		var err error
		if e.call = l.Resume(now, o.n); e.call.IsZero() {
			err = errMoved
		} else {
			e.at.reserved.take()
		}
		unlock(list)
		return nil, nil, err
	}
	bucket := l.Hold(now)
	if bucket.IsZero() {
		unlock(list)
		return nil, nil, errMoved
	}
	at := bucket.At()
	var loan *loan
	refused := check(list, false, at, o, l.origin, 0)
	if refused == nil {
		would := judge(list, e, o, now, at, 0)
		count(list, at, o.n, e.at.reserved, l.origin)
		e.call = bucket.Enter(o.n)
		if would != nil {
			list[0].countDry(e, would, now, o.n)
		}
	} else if bucket.Release(); o.prioritized && refused.Limit.Grade == QPS {
		loan = borrow(e, o, list, now, at)
	}
	unlock(list)
	return loan, refused, nil
}

// check returns why limiters refuse a call, or their dry runs would, nil if they do not. Those on concurrency come first, because a
// call that these refuse must not wait. Holds their locks.
func check(list []*limiter, dry bool, bucket time.Duration, o *options, origin string, waiting int64) *BlockedError {
	if o.admitted {
		return nil
	}
	for _, m := range list {
		if refused := m.of(dry).full(origin, waiting); refused != nil {
			return refused
		}
	}
	for _, m := range list {
		if refused := m.of(dry).exceeded(bucket, o.n, origin); refused != nil {
			return refused
		}
	}
	return nil
}

// loan is a borrowed pass.
type loan struct {
	node.Loan
	decided leap.Reading // when it was borrowed: the call's response time counts from then
	bucket  time.Duration
	n       int64
}

// lender is the first bucket after the bucket at in which all rules admit n calls; ok is false if there is none, or it is too late. Holds
// the limiters' locks.
func lender(c *Collector, list []*limiter, dry bool, now leap.Reading, at time.Duration, n int64, origin string) (bucket time.Duration, ok bool) {
	bucket = at
	for last := bucket - 1; last != bucket; {
		last = bucket
		for _, m := range list {
			if bucket, ok = m.of(dry).lender(at, bucket, n, origin); !ok {
				return 0, false
			}
		}
	}
	return bucket, c.until(now, bucket) <= node.OccupyTimeout
}

// borrow finds a bucket in which all rules admit the call, and borrows from it; nil if there is none. Holds the limiters' locks.
func borrow(e *Entry, o *options, list []*limiter, now leap.Reading, at time.Duration) *loan {
	l := e.at.leaf
	bucket, ok := lender(l.resource.c, list, false, now, at, o.n, l.origin)
	if !ok {
		return nil
	}
	borrowed, ok := l.Occupy(now, bucket, o.n)
	if !ok {
		return nil
	}
	e.at.reserved.take()
	update(list, false, l.origin, func(q *node.Quota) { q.Borrow(at, bucket, o.n) })
	return &loan{Loan: borrowed, decided: now, bucket: bucket, n: o.n}
}

// update calls f with the passes that a call of the origin counts for, those of the limits or of the dry runs. Holds the limiters' locks.
func update(list []*limiter, dry bool, origin string, f func(*node.Quota)) {
	for _, m := range list {
		s := m.of(dry)
		if q := s.all.passes; q != nil {
			f(q)
		}
		if x := s.origins[origin]; x != nil && x.passes != nil {
			f(x.passes)
		}
	}
}

// cancel gives a loan back, and reports whether it did. If it does not, the loan has passed.
func (b *loan) cancel(l *leaf, list []*limiter) bool {
	_ = lock(list) // none is dropped: the call counts in them
	defer unlock(list)
	if !b.Cancel(l.resource.c.line.Now()) {
		return false
	}
	update(list, false, l.origin, func(q *node.Quota) { q.GiveBack(b.bucket, b.n) })
	return true
}

// until is how long it is from the reading now until the bucket begins.
func (c *Collector) until(now leap.Reading, bucket time.Duration) time.Duration {
	return c.line.At(now).ReadingAt(bucket).Sub(now)
}

// errClock ends the wait of a call whose clock stands still.
var errClock = errors.New("collector: the clock does not reach the next bucket")

// wait waits until the bucket begins that the call borrowed from, or gives it back when ctx ends, and returns ctx's error.
func (b *loan) wait(ctx context.Context, e *Entry, list []*limiter) error {
	c := e.at.leaf.resource.c
	// [Options].Now may stand still; no call waits for it for ever.
	maxWait := time.NewTimer(2 * node.OccupyTimeout)
	defer maxWait.Stop()
	for {
		now := c.line.Now()
		var ok bool
		if e.call, ok = b.Call(now, b.decided); ok {
			return nil
		}
		timer := time.NewTimer(min(max(c.until(now, b.bucket), time.Millisecond), node.OccupyTimeout))
		reason := func() error { return errClock }
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
			reason = func() error { return context.Cause(ctx) }
		case <-maxWait.C:
		}
		timer.Stop()
		if b.cancel(e.at.leaf, list) {
			return cmp.Or(reason(), context.Canceled) // asked only now: a context of somebody's own may panic, or not know
		}
	}
}
