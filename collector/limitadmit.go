package collector

import (
	"context"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Admission of a call
//
// A resource without limits has no limiter: its calls pay one load of a nil pointer, in Resource.begin or leaf.enter. A
// call under limits takes these steps:
//
//	leaf.enter → limiter.admit → reserve: find the limiters of the call
//	    │
//	tryPass, with all limiters locked
//	    ├─ another process counted the pass (Passed) ── in flight, without a check
//	    ├─ all rules admit the call ─────────────── evalDryRuns, countPasses, Bucket.Enter
//	    ├─ a rule refuses the call ──────────────── leaf.block, BlockedError
//	    └─ a rule on QPS refuses a prioritized call ────── borrow
//	           │
//	       loan.wait, without a lock
//	           ├─ the bucket begins: the call passed ───── afterWait
//	           └─ the context ends ─────────── loan.cancel, leaf.block, BlockedError
//
// A call can find that its leaf was retired, that a limiter was dropped, or that its name got its own resource.
// reserve, tryPass and leaf.block then count nothing and return errMoved. Collector.count starts again with another
// leaf.

// admit lets the call of the entry pass, or counts it as a block and returns a [BlockedError]. If the call must look up
// its leaf again, admit returns errMoved. m is the limiter of the resource that records the call.
func (m *limiter) admit(ctx context.Context, e *Entry, o *options) error {
	list, r, err := m.reserve(o, e.at.leaf)
	if err != nil {
		return err
	}
	if r != nil {
		e.at = &r.place
		// If the call does not enter, its limiters must not count it as in flight. A limit may refuse it, or a method
		// of a user-defined context may panic while the call waits.
		defer func() {
			if e.call.IsZero() {
				r.release()
			} else {
				e.markReserved()
			}
		}()
	}
	return admitUnder(ctx, e, o, list)
}

// admitUnder is the part of admit after reserve; list has the limiters that reserve found. A prioritized call may wait.
// The results are those of admit.
func admitUnder(ctx context.Context, e *Entry, o *options, list []*limiter) error {
	loan, refused, err := tryPass(e, o, list)
	if loan != nil {
		if refused.Cancelled = loan.wait(ctx, e, list); refused.Cancelled == nil {
			afterWait(e, o, list)
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

// tryPass checks the call, reads its start time and counts it. The limiters stay locked during all three steps. If a
// limit refuses the call, tryPass returns the reason. If the call may wait instead, tryPass also returns a loan. If the
// call must look up its leaf again, tryPass returns errMoved.
func tryPass(e *Entry, o *options, list []*limiter) (*loan, *BlockedError, error) {
	if err := lockAll(list); err != nil {
		return nil, nil, err
	}
	l := e.at.leaf
	now := l.resource.c.line.Now()
	if o.passed { // another process counted the pass, so only count the call as in flight
		var err error
		if e.call = l.Resume(now, o.n); e.call.IsZero() {
			err = errMoved
		} else {
			e.at.reserved.enter()
		}
		unlockAll(list)
		return nil, nil, err
	}
	// Hold keeps the bucket open until Enter or Release. The quotas and the leaf therefore count the pass in the same
	// bucket.
	bucket := l.Hold(now)
	if bucket.IsZero() { // the leaf was retired
		unlockAll(list)
		return nil, nil, errMoved
	}
	at := bucket.At()
	var loan *loan
	refused := checkRules(list, false, at, o, l.origin, 0)
	if refused == nil {
		// evalDryRuns must run before countPasses: a dry run must not count this pass when it decides. countDry must
		// run after Enter, for two reasons: it locks another statistic, and it sets the note of the call that Enter
		// returns.
		dryRefused := evalDryRuns(list, e, o, now, at, 0)
		countPasses(list, at, o.n, e.at.reserved, l.origin)
		e.call = bucket.Enter(o.n)
		if dryRefused != nil {
			list[0].countDry(e, dryRefused, now, o.n)
		}
	} else if bucket.Release(); o.prioritized && refused.Limit.Grade == QPS {
		loan = borrow(e, o, list, now, at)
	}
	unlockAll(list)
	return loan, refused, nil
}

// checkRules returns an error if the limits refuse the call. If dry is true, it checks the dry runs instead of the
// limits. It checks concurrency first, because a call over a limit on concurrency must not wait for a bucket. For the
// parameter waiting see [quotas.checkConcurrency]. The limiters must be locked.
func checkRules(
	list []*limiter, dry bool, bucket time.Duration, o *options, origin string, waiting int64,
) *BlockedError {
	if o.admitted {
		return nil
	}
	for _, m := range list {
		if refused := m.set(dry).checkConcurrency(origin, waiting); refused != nil {
			return refused
		}
	}
	for _, m := range list {
		if refused := m.set(dry).checkQPS(bucket, o.n, origin); refused != nil {
			return refused
		}
	}
	return nil
}

// countPasses counts n passes in a bucket for all limiters. If the call has a reservation r, countPasses also counts it
// as in flight. r may be nil. The limiters must be locked.
func countPasses(list []*limiter, bucket time.Duration, n int64, r *reservation, origin string) {
	r.enter()
	for _, m := range list {
		m.pass(bucket, n, origin)
	}
}

// eachQuota calls f with every quota that counts calls of the origin. Each limiter can have two: the quota for all
// origins together, and the quota for this origin. If dry is true, these are the quotas of the dry runs, otherwise the
// quotas of the limits. The limiters must be locked.
func eachQuota(list []*limiter, dry bool, origin string, f func(*node.Quota)) {
	for _, m := range list {
		s := m.set(dry)
		if q := s.all.passes; q != nil {
			f(q)
		}
		if x := s.origins[origin]; x != nil && x.passes != nil {
			f(x.passes)
		}
	}
}
