package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Quota holds the number of calls that may pass in a second, and the ring of passes that decides about the next call:
// past buckets, and later buckets with borrowed passes. All times are starts of buckets in line time, from [Bucket.At],
// and must not go back. The buckets of a Quota are as long as the buckets of the second window.
//
//	2 buckets in a second, count 10
//
//	bucket      9.0 s    9.5 s   10.0 s   10.5 s
//	passes        3        4        5        2       <- 10.5 s: borrowed
//	                  |--- window ----|                4 + 5 = 9: one more call may pass
//	         |----- strict window ----|                3 + 4 + 5 = 12: a strict quota refuses the next call
//
// A window of one second that starts together with a bucket never contains more passes than the count. Any other second
// can contain up to twice the count, because calls may pass at both of its ends. A span that is one bucket shorter than
// a second never contains more passes than the count, wherever it starts. More buckets are therefore stricter.
//
// The window of a strict quota also includes the bucket that is just leaving the window. No second at all then contains
// more passes than the count. Under constant overload, a steady stream gets n/(n+1) of the count with n buckets.
//
// All seconds here are seconds of the timeline. While the timeline slews to follow the wall clock, they may be up to 1
// % shorter or longer.
//
// Quotas can share their passes, see [Quota.With]. Several rules for the same calls then count each call once.
//
// Create a Quota with [NewQuota]. Concurrent use is not safe. CanPass costs two comparisons. The first call of a method
// in a bucket also scans all buckets.
type Quota struct {
	*passes
	count  int64
	strict int // 1 if the bucket that is just leaving the window is included, otherwise 0
}

// passes is the ring of passes of one or several quotas. The ring covers the two windows that end with the current
// bucket, and the later buckets that calls may borrow from.
type passes struct {
	ring     leap.Array[int64]
	ahead    time.Duration // time from the current bucket to the newest one
	at       time.Duration // start of the current bucket
	open     *int64        // passes of the current bucket
	sums     [2]int64      // passes of the window that ends with the current bucket, and of the strict window
	borrowed int64         // passes of later buckets
}

// NewQuota returns a quota of count passes per second, at least 0, for statistics of this config.
func NewQuota(config *Config, count int64, strict bool) *Quota {
	p := newPasses(config.second.Length())
	return (&Quota{passes: &p}).With(count, strict)
}

// newPasses returns an empty ring with buckets of the given length.
func newPasses(length time.Duration) passes {
	ahead := max(length, OccupyTimeout.Truncate(length))
	span := time.Second + length + ahead
	ring, err := leap.NewArray[int64](span, int(span/length))
	if err != nil {
		panic(err) // impossible: the buckets of a Config divide a second
	}
	return passes{ring: ring, ahead: ahead, at: beforeAll}
}

// With returns a quota with another count that shares the passes of q.
func (q *Quota) With(count int64, strict bool) *Quota {
	x := &Quota{passes: q.passes, count: max(count, 0)}
	if strict {
		x.strict = 1
	}
	return x
}

// Add adds the passes of o to q, the borrowed ones included. The quota of a new rule thus starts with calls that
// another quota has counted.
func (q *Quota) Add(o *Quota) {
	q.advanceTo(o.at)
	for at, b := range o.ring.Window(o.newest(), o.ring.Span()) {
		q.addTo(at, *b)
	}
	q.sumWindows()
}

// addTo adds n passes to a bucket, if the ring has it.
func (q *passes) addTo(at time.Duration, n int64) {
	if b := q.ring.At(at); b != nil {
		*b = saturate(*b, n)
	}
}

// newest returns the last bucket that calls may borrow from.
func (q *passes) newest() time.Duration { return q.at + q.ahead }

// span returns the length of the window of q.
func (q *Quota) span() time.Duration { return time.Second + time.Duration(q.strict)*q.ring.Length() }

// beforeAll is earlier than every bucket.
const beforeAll = time.Duration(-1) << 62

// Passes returns the passes in the window that ends with the given bucket.
func (q *Quota) Passes(bucket time.Duration) int64 {
	q.advanceTo(bucket)
	return q.sums[q.strict]
}

// Waiting returns the passes borrowed from buckets after the given one.
func (q *Quota) Waiting(bucket time.Duration) int64 {
	q.advanceTo(bucket)
	return q.borrowed
}

// CanPass reports whether the quota allows n more passes in the given bucket.
func (q *Quota) CanPass(bucket time.Duration, n int64) bool {
	q.advanceTo(bucket)
	return n <= q.count-q.sums[q.strict] && (q.borrowed == 0 || q.fits(bucket, n))
}

// Pass counts n passes in the given bucket, whether the quota allows them or not.
func (q *Quota) Pass(bucket time.Duration, n int64) {
	q.advanceTo(bucket)
	*q.open = saturate(*q.open, n)
	q.sums[0], q.sums[1] = saturate(q.sums[0], n), saturate(q.sums[1], n)
}

// TryOccupyNext returns the first bucket after current that starts at earliest or later and can lend n passes. A bucket
// can lend n passes if no window that contains the bucket has more passes than the count afterwards. TryOccupyNext
// returns false if no such bucket begins within [OccupyTimeout]. The bucket that follows current may lend passes even
// if buckets are longer than OccupyTimeout. The formula is Sentinel's (StatisticNode.tryOccupyNext), applied also to
// the windows that end after the bucket.
func (q *Quota) TryOccupyNext(current, earliest time.Duration, n int64) (bucket time.Duration, ok bool) {
	q.advanceTo(current)
	length := q.ring.Length()
	for bucket = max(q.at+length, earliest); bucket <= q.newest(); bucket += length {
		if q.fits(bucket, n) {
			return bucket, true
		}
	}
	return 0, false
}

// Fill sets the passes of q to the passes of the leaves of a view at the reading now, the borrowed ones included. A
// rule that is added while calls are running starts with these passes.
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

// Borrow counts n passes in a later bucket, which TryOccupyNext has returned for this quota or for another one. The
// parameter current is the current bucket.
func (q *Quota) Borrow(current, bucket time.Duration, n int64) {
	q.advanceTo(current)
	q.addTo(bucket, n)
	q.borrowed = saturate(q.borrowed, n)
}

// GiveBack takes back n passes that Borrow counted in a bucket.
func (q *Quota) GiveBack(bucket time.Duration, n int64) {
	if b := q.ring.At(bucket); b != nil {
		*b = max(*b-n, 0)
		q.sumWindows()
	}
}

// fits reports whether every window that contains the bucket allows n more passes.
func (q *Quota) fits(bucket time.Duration, n int64) bool {
	length := q.ring.Length()
	for end := bucket; end <= min(bucket+q.span()-length, q.newest()); end += length {
		if n > q.count-q.window(end, q.span()) {
			return false
		}
	}
	return true
}

// window returns the passes of the buckets of a span that ends with the bucket end. A bucket that has not begun
// contains the passes that were borrowed from it.
func (q *passes) window(end, span time.Duration) (sum int64) {
	for _, b := range q.ring.Window(end, span) {
		sum = saturate(sum, *b)
	}
	return sum
}

// advanceTo makes the given bucket the current one, unless the current bucket is the same or later.
func (q *passes) advanceTo(bucket time.Duration) {
	if bucket > q.at {
		q.turnTo(bucket)
	}
}

// turnTo makes the given bucket the current one, and opens the buckets up to the newest one.
func (q *passes) turnTo(bucket time.Duration) {
	length := q.ring.Length()
	next := q.newest() + length
	q.at = bucket
	for b := max(next, bucket-time.Second); b <= q.newest(); b += length {
		q.ring.Open(b)
	}
	q.open = q.ring.At(bucket)
	q.sumWindows()
}

// sumWindows computes the sums of the windows and the borrowed passes, so that further calls in the same bucket need no
// scan. All functions that change the ring call it, except Pass and Borrow, which update the sums themselves.
func (q *passes) sumWindows() {
	q.sums = [2]int64{q.window(q.at, time.Second), q.window(q.at, time.Second+q.ring.Length())}
	q.borrowed = q.window(q.newest(), q.ahead)
}
