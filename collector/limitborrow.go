package collector

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// Borrowing from a later bucket
//
// A limit on QPS may refuse a prioritized call now, but let it pass in a later bucket (a part of a second). In this
// example the limit is 10, a second has two buckets, and the bucket "at" is open:
//
//	bucket         at-1    at    at+1
//	passes            6     4       0
//	                  └─ 10 ─┘              no quota in at: the call is refused there
//	                        └─ 4+1 ─┘       quota in at+1: the call borrows a pass from this bucket
//
// The quotas of the limits count the borrowed pass in at+1 immediately, so no other call can use it. The leaf that
// records the call counts the pass when at+1 begins. Limits on concurrency count the call while it waits, too.

// loan is a pass that a prioritized call borrowed from a later bucket. The call waits until this bucket begins.
type loan struct {
	node.Loan
	entered leap.Reading  // reading at which the call borrowed; the response time of the call starts here
	bucket  time.Duration // start of the borrowed bucket
	n       int64         // number of borrowed passes: 1, or the size of a batch
}

// firstBorrowable returns the first bucket after the open bucket in which all rules of the limiters have quota for n
// passes of the origin. The parameter at is the start of the open bucket. If there is no such bucket, or if the bucket
// begins more than [node.OccupyTimeout] after the reading now, ok is false. If dry is true, the rules are the dry runs,
// otherwise the limits.
//
// firstBorrowable queries one limiter after the other. Each limiter begins its search at the bucket that the previous
// limiter found. One loop over the limiters is enough: if a rule has quota in a bucket, it also has quota in all later
// buckets, because [node.Quota] checks every window up to the last bucket that can be borrowed from. The limiters must
// be locked.
func firstBorrowable(
	c *Collector, list []*limiter, dry bool, now leap.Reading, at time.Duration, n int64, origin string,
) (bucket time.Duration, ok bool) {
	bucket = at
	for _, m := range list {
		if bucket, ok = m.set(dry).firstBorrowable(at, bucket, n, origin); !ok {
			return 0, false
		}
	}
	return bucket, c.until(now, bucket) <= node.OccupyTimeout
}

// borrow borrows the passes of the call from the first later bucket in which all limits have quota for them. It returns
// nil if no such bucket begins within [node.OccupyTimeout], or if the leaf was retired. The parameter at is the start
// of the open bucket. The limiters must be locked.
func borrow(e *Entry, o *options, list []*limiter, now leap.Reading, at time.Duration) *loan {
	l := e.at.leaf
	// All limiters are locked, so no other call can use the quota before eachQuota counts the borrowed passes.
	bucket, ok := firstBorrowable(l.resource.c, list, false, now, at, o.n, l.origin)
	if !ok {
		return nil
	}
	borrowed, ok := l.Occupy(now, bucket, o.n)
	if !ok { // the leaf was retired, or the bucket has begun
		return nil
	}
	e.at.reserved.enter() // the call is in flight for its limiters while it waits
	eachQuota(list, false, l.origin, func(q *node.Quota) { q.Borrow(at, bucket, o.n) })
	return &loan{Loan: borrowed, entered: now, bucket: bucket, n: o.n}
}

// cancel ends the loan, gives the borrowed passes back to the quotas of the limiters in list, and returns true. If the
// borrowed bucket has begun, the call has already passed. In that case, cancel changes nothing and returns false.
func (b *loan) cancel(l *leaf, list []*limiter) bool {
	_ = lockAll(list) // lockAll cannot fail: limiters with a call in flight are never dropped
	defer unlockAll(list)
	if !b.Cancel(l.resource.c.line.Now()) {
		return false
	}
	eachQuota(list, false, l.origin, func(q *node.Quota) { q.GiveBack(b.bucket, b.n) })
	return true
}

// until returns the duration from the reading now to the start of bucket.
func (c *Collector) until(now leap.Reading, bucket time.Duration) time.Duration {
	return c.line.At(now).ReadingAt(bucket).Sub(now)
}

// errClock is the error of a call that stopped waiting because the clock of [Options].Now makes no progress.
var errClock = errors.New("collector: the clock does not reach the next bucket")

// wait waits until the borrowed bucket begins, and then sets e.call. If ctx ends before the bucket begins, wait cancels
// the loan and returns the cause of ctx. If the bucket does not begin within twice [node.OccupyTimeout], wait cancels
// the loan and returns errClock.
func (b *loan) wait(ctx context.Context, e *Entry, list []*limiter) error {
	c := e.at.leaf.resource.c
	// The clock of [Options].Now may make no progress, so a timer of package time bounds the wait.
	maxWait := time.NewTimer(2 * node.OccupyTimeout)
	defer maxWait.Stop()
	for {
		now := c.line.Now()
		var ok bool
		if e.call, ok = b.Call(now, b.entered); ok {
			return nil
		}
		// The timeline may slow down its seconds to follow the wall clock. The bucket may then begin after the timer
		// has fired, so the loop calls b.Call again.
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
			// Call the function reason only after cancel has returned the quota, because the methods of a user-defined
			// context may panic. They may also return nil; wait then returns context.Canceled.
			return cmp.Or(reason(), context.Canceled)
		}
		// cancel failed because the bucket has begun, so the call has passed. The next iteration sets e.call.
	}
}
