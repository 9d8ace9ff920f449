package collector

import (
	"context"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Admission of a call
//
// A resource without limits has no limiter: its calls pay one load of a nil pointer, in Resource.begin or leaf.enter.
// A call under limits takes these steps:
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
// reserve, tryPass and leaf.block return errMoved if the leaf was retired, a limiter was dropped, or the name got its
// own resource. Nothing is counted then, and Collector.count starts again with another leaf.

// admit passes the call of the entry, or counts it as a block and returns a [BlockedError]. If the call must look up
// its leaf again, admit returns errMoved. m is the limiter of the resource that records the call.
func (m *limiter) admit(ctx context.Context, e *Entry, o *options) error {
	list, r, err := m.reserve(o, e.at.leaf)
	if err != nil {
		return err
	}
	if r != nil {
		e.at = &r.place
		// A limit may refuse the call, and user code of the context may panic during the wait. If the call did not
		// enter, its limiters must not count it as in flight.
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

// admitUnder implements admit with the limiters that reserve found. It passes the call, or counts it as a block and
// returns a [BlockedError]. A prioritized call may wait first. If the call must look up its leaf again, admitUnder
// returns errMoved.
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

// tryPass checks the call, reads its start time and counts it, all while the limiters are locked. If a limit refuses
// the call, tryPass returns the reason, and also a loan if the call may wait instead. If the call must look up its leaf
// again, tryPass returns errMoved.
func tryPass(e *Entry, o *options, list []*limiter) (*loan, *BlockedError, error) {
	if err := lockAll(list); err != nil {
		return nil, nil, err
	}
	l := e.at.leaf
	now := l.resource.c.line.Now()
	if o.passed { // another process counted the pass: no limit checks it, and the call is only in flight here
		var err error
		if e.call = l.Resume(now, o.n); e.call.IsZero() {
			err = errMoved
		} else {
			e.at.reserved.enter()
		}
		unlockAll(list)
		return nil, nil, err
	}
	// Hold keeps the bucket open until Enter or Release, so the quotas and the leaf count the pass in the same bucket.
	bucket := l.Hold(now)
	if bucket.IsZero() { // the leaf was retired
		unlockAll(list)
		return nil, nil, errMoved
	}
	at := bucket.At()
	var loan *loan
	refused := checkRules(list, false, at, o, l.origin, 0)
	if refused == nil {
		// evalDryRuns must run before countPasses, so that the dry runs decide before the pass counts. countDry must
		// run after Enter: it locks another statistic, and sets the note of the call that Enter returns.
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

// checkRules returns an error if the limits refuse the call. If dry is set, it checks the dry runs instead of the
// limits. It checks concurrency first: a call over a limit on concurrency must not wait for a bucket. For the parameter
// waiting see [quotas.checkConcurrency]. The limiters must be locked.
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

// countPasses counts n passes in a bucket. If r is not nil, it also counts the call of this reservation as in flight.
// The limiters must be locked.
func countPasses(list []*limiter, bucket time.Duration, n int64, r *reservation, origin string) {
	r.enter()
	for _, m := range list {
		m.pass(bucket, n, origin)
	}
}

// eachQuota calls f with every quota that counts calls of the origin: for each limiter, the quota for all origins
// together and the quota for this origin, as far as they exist. These are the quotas of the dry runs if dry is set,
// otherwise the quotas of the limits. The limiters must be locked.
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
