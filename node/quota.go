package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// OccupyTimeout is how long, at most, a call may wait for a bucket that it borrows from: Sentinel's.
const OccupyTimeout = 500 * time.Millisecond

// Quota is how many calls may pass in a second: the ring of a rule that decides on passes, with the buckets that have
// been and those to come that passes were borrowed from. All times are line times at which a bucket starts, as
// [Bucket.At] tells them; they must not go back. Its buckets are as long as those of the second window.
//
// No window of one second that begins when a bucket does ever holds more passes than the count. A second that begins
// anywhere can hold up to twice as many, but only if they are at its two ends: any stretch of a second less one
// bucket never holds more than the count. So more buckets are stricter. A strict quota counts the bucket, too, that is
// just leaving the window; then no second at all holds more, and a steady stream gets n/(n+1) of the count with n
// buckets, when there is more to do than that.
//
// Seconds are those of the timeline, which are up to a hundredth shorter while it follows the wall clock.
//
// Quotas can share their passes, see [Quota.With]: several rules for the same calls count them once.
//
// A Quota must be made with [NewQuota]. It is not safe for concurrent use. Asking costs two comparisons; the first
// question in a bucket costs a look at all of them.
type Quota struct {
	*passes
	count  int64
	strict int // 1 if the bucket counts that is just leaving the window, otherwise 0
}

// passes is what quotas count. The ring has the two windows that end with the present bucket, and the buckets to come from which
// may be borrowed.
type passes struct {
	ring     leap.Array[int64] // passes
	ahead    time.Duration     // its newest bucket is so long after at
	at       time.Duration     // the present bucket
	open     *int64            // its passes
	sums     [2]int64          // passes of the window that ends with it, and of the strict one, which is a bucket longer
	borrowed int64             // passes of buckets after it
}

// NewQuota makes a quota of count passes a second for statistics of this shape; below 0 is 0.
func NewQuota(shape *Shape, count int64, strict bool) *Quota {
	p := newPasses(shape.second.Length())
	return (&Quota{passes: &p}).With(count, strict)
}

// newPasses is no passes, in buckets of a length.
func newPasses(length time.Duration) passes {
	ahead := max(length, OccupyTimeout.Truncate(length))
	span := time.Second + length + ahead
	ring, err := leap.NewArray[int64](span, int(span/length))
	if err != nil {
		panic(err) // a shape's buckets divide a second, and so make a ring
	}
	return passes{ring: ring, ahead: ahead, at: beforeAll}
}

// With returns a quota of the same passes with another count: what is counted for one of them is counted for both.
func (q *Quota) With(count int64, strict bool) *Quota {
	x := &Quota{passes: q.passes, count: max(count, 0)}
	if strict {
		x.strict = 1
	}
	return x
}

// Add counts what another quota has, the borrowed passes included: for calls that were counted elsewhere before.
func (q *Quota) Add(o *Quota) {
	q.advanceTo(o.at)
	for at, b := range o.ring.Window(o.newest(), o.ring.Span()) {
		q.addTo(at, *b)
	}
	q.sumWindows()
}

// put counts n passes in a bucket, if it is known.
func (q *passes) addTo(at time.Duration, n int64) {
	if b := q.ring.At(at); b != nil {
		*b = saturate(*b, n)
	}
}

// newest is the last bucket from which may be borrowed.
func (q *passes) newest() time.Duration { return q.at + q.ahead }

// span is how long the window of the quota is.
func (q *Quota) span() time.Duration { return time.Second + time.Duration(q.strict)*q.ring.Length() }

// never is before every bucket.
const beforeAll = time.Duration(-1) << 62

// Passes is how many calls passed in the window that ends with the bucket at.
func (q *Quota) Passes(at time.Duration) int64 {
	q.advanceTo(at)
	return q.sums[q.strict]
}

// Waiting is how many passes are borrowed from buckets after the bucket at.
func (q *Quota) Waiting(at time.Duration) int64 {
	q.advanceTo(at)
	return q.borrowed
}

// CanPass reports whether n more calls may pass in the bucket at.
func (q *Quota) CanPass(at time.Duration, n int64) bool {
	q.advanceTo(at)
	return n <= q.count-q.sums[q.strict] && (q.borrowed == 0 || q.fits(at, n))
}

// Pass counts n passes in the bucket at, whether they may or not.
func (q *Quota) Pass(at time.Duration, n int64) {
	q.advanceTo(at)
	*q.open = saturate(*q.open, n)
	q.sums[0], q.sums[1] = saturate(q.sums[0], n), saturate(q.sums[1], n)
}

// TryOccupyNext finds the first bucket after the bucket at, and not before the bucket from, from which n passes can be
// borrowed: no window with that bucket then holds more than the count. It reports false if no such bucket begins within
// [OccupyTimeout]; the next bucket is always tried. This is Sentinel's formula (StatisticNode.tryOccupyNext), applied to
// the windows that end after the bucket, too.
func (q *Quota) TryOccupyNext(at, from time.Duration, n int64) (bucket time.Duration, ok bool) {
	q.advanceTo(at)
	length := q.ring.Length()
	for bucket = max(q.at+length, from); bucket <= q.newest(); bucket += length {
		if q.fits(bucket, n) {
			return bucket, true
		}
	}
	return 0, false
}

// Fill sets the quota to the passes of a view's leaves, the borrowed ones included, at the reading now: for a rule that
// begins while calls go on.
func (q *Quota) Fill(v *View, now leap.Reading) {
	v.readInOneBucket(now, func() { *q.passes = newPasses(q.ring.Length()) }, func(s *Statistic) {
		q.advanceTo(s.start)
		open, _ := s.openCounts()
		q.addTo(s.start, open.Pass)
		for at, b := range s.history.window.Window(s.start, s.start-q.at+time.Second+q.ring.Length()) {
			q.addTo(at, b.Pass)
		}
		for _, l := range s.history.loans {
			q.addTo(l.at, l.passes)
		}
	})
	q.sumWindows()
}

// Borrow counts n passes in a bucket that TryOccupyNext found, of this quota or of another one, at the bucket at.
func (q *Quota) Borrow(at, bucket time.Duration, n int64) {
	q.advanceTo(at)
	q.addTo(bucket, n)
	q.borrowed = saturate(q.borrowed, n)
}

// GiveBack returns n passes that were borrowed from a bucket.
func (q *Quota) GiveBack(bucket time.Duration, n int64) {
	if b := q.ring.At(bucket); b != nil {
		*b = max(*b-n, 0)
		q.sumWindows()
	}
}

// fits reports whether every window with the bucket in it admits n more passes.
func (q *Quota) fits(bucket time.Duration, n int64) bool {
	length := q.ring.Length()
	for end := bucket; end <= min(bucket+q.span()-length, q.newest()); end += length {
		if n > q.count-q.window(end, q.span()) {
			return false
		}
	}
	return true
}

// window is the passes of the buckets of a span that ends with a bucket, which may be one to come: those hold what was borrowed
// from them.
func (q *passes) window(end, span time.Duration) (sum int64) {
	for _, b := range q.ring.Window(end, span) {
		sum = saturate(sum, *b)
	}
	return sum
}

// move makes the bucket at the present one, if it is not there yet.
func (q *passes) advanceTo(at time.Duration) {
	if at > q.at {
		q.turnTo(at)
	}
}

func (q *passes) turnTo(at time.Duration) {
	length := q.ring.Length()
	next := q.newest() + length
	q.at = at
	for b := max(next, at-time.Second); b <= q.newest(); b += length {
		q.ring.Open(b)
	}
	q.open = q.ring.At(at)
	q.sumWindows()
}

// measure adds up the windows and the borrowed passes, so that questions in the same bucket need not. Whatever changes the ring
// otherwise than by Pass and Borrow, which know by how much, calls it.
func (q *passes) sumWindows() {
	q.sums = [2]int64{q.window(q.at, time.Second), q.window(q.at, time.Second+q.ring.Length())}
	q.borrowed = q.window(q.newest(), q.ahead)
}
