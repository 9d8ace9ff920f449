package collector

import (
	"context"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Admission of a call
//
// A resource without limits has no limiter (the state of limits): its calls only load a nil pointer, in Resource.begin
// or leaf.enter. A call under limits takes these steps:
//
//	leaf.enter → limiter.admit → reserve: find the limiters of the call
//	    │
//	tryPass, with all limiters locked
//	    ├─ another process counted the pass (Passed) ── Resume: count the call in flight, without a check
//	    ├─ all rules admit the call ─────────────── evalDryRuns, countPasses, Bucket.Enter
//	    ├─ a rule refuses the call ──────────────── leaf.block, BlockedError
//	    └─ a rule on QPS refuses a prioritized call ────── borrow
//	           │
//	       loan.wait, without a lock
//	           ├─ the bucket begins: the call passes ───── afterWait
//	           └─ the context ends ─────────── loan.cancel, leaf.block, BlockedError
//
// During these steps, the leaf of the call may be retired, a limiter of the call may be dropped, or the name of the
// call may get its own resource. The functions reserve, tryPass and leaf.block then count nothing and return errMoved,
// and Collector.count repeats the steps with another leaf.

// admit lets the call of the entry pass, or counts it as a block and returns a [BlockedError]. If the leaf can no
// longer record the call, admit returns errMoved. m is the limiter of the resource that records the call.
func (m *limiter) admit(ctx context.Context, e *Entry, o *options) error {
	list, r, err := m.reserve(o, e.at.leaf)
	if err != nil {
		return err
	}
	if r != nil {
		e.at = &r.place
		// If the call does not enter, the limiters must not count it as in flight. There are two cases: admitUnder
		// returns an error, or a method of a user-defined context panics while the call waits.
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

// admitUnder is the part of admit after reserve. list has the limiters that reserve found. A prioritized call may wait
// in admitUnder until a later bucket begins. admitUnder returns the same errors as admit.
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

// tryPass reads the clock for the start of the call, checks the call under its limiters, and counts it as a pass. The
// limiters stay locked during all three steps. If a limit refuses the call, tryPass returns a BlockedError. If the call
// may wait for a later bucket instead, tryPass also returns a loan (a pass borrowed from the later bucket). If the leaf
// can no longer record the call, tryPass returns errMoved.
func tryPass(e *Entry, o *options, list []*limiter) (*loan, *BlockedError, error) {
	if err := lockAll(list); err != nil {
		return nil, nil, err
	}
	l := e.at.leaf
	now := l.resource.c.line.Now()
	if o.passed { // another process has counted the pass, so only count the call as in flight
		var err error
		if e.call = l.Resume(now, o.n); e.call.IsZero() {
			err = errMoved
		} else {
			e.at.reserved.enter()
		}
		unlockAll(list)
		return nil, nil, err
	}
	// Hold keeps the current bucket open until bucket.Enter or bucket.Release. The quotas and the leaf therefore count
	// the pass in the same bucket.
	bucket := l.Hold(now)
	if bucket.IsZero() { // the leaf was retired
		unlockAll(list)
		return nil, nil, errMoved
	}
	at := bucket.At()
	var loan *loan
	refused := checkRules(list, false, at, o, l.origin, 0)
	if refused == nil {
		// evalDryRuns must run before countPasses, so that the dry runs do not count the call before they check it.
		// countDry must run after bucket.Enter, for two reasons. First, countDry locks another statistic, which is
		// allowed only after bucket.Enter has unlocked the leaf. Second, countDry sets the note of the call that
		// bucket.Enter returns.
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

// checkRules returns an error if a limit of the limiters in list refuses a call that would pass in the open bucket. If
// dry is true, checkRules checks the dry runs instead of the limits. No limit and no dry run refuses a call with the
// option [Admitted]. checkRules checks limits on concurrency before limits on QPS: if a limit on concurrency refuses a
// call, the call must not wait for a later bucket. The parameter bucket is the start of the open bucket. For the
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

// countPasses counts n passes of an origin in a bucket, in the meters of all limiters of list. r is the reservation of
// the call, or nil. If r is not nil, countPasses also counts the call as in flight: see reservation.enter. The limiters
// must be locked.
func countPasses(list []*limiter, bucket time.Duration, n int64, r *reservation, origin string) {
	r.enter()
	for _, m := range list {
		m.pass(bucket, n, origin)
	}
}

// eachQuota calls f with every quota that counts calls of the origin. Each limiter of list can have two such quotas:
// for all origins together, and for this origin. If dry is true, eachQuota takes the quotas of the dry runs, otherwise
// the quotas of the limits. The limiters must be locked.
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
