package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Quota limits the number of calls that may pass in a second. A ring of buckets holds the passes that the quota has
// counted: in past buckets, in the current bucket, and in later buckets from which calls have borrowed. The methods
// take a bucket as its start in line time, see [Bucket.At]. From one method call to the next, the current bucket must
// stay the same or move forward. A bucket of a Quota is as long as a bucket of the second window.
//
//	2 buckets in a second, 10 passes allowed, current bucket 10.0 s
//
//	bucket      9.0 s    9.5 s   10.0 s   10.5 s
//	passes        3        4        5        2       <- calls have borrowed 2 passes from the bucket 10.5 s
//	                  |--- window ----|                4 + 5 = 9: one more call may pass
//	         |----- strict window ----|                3 + 4 + 5 = 12: a strict quota refuses the next call
//
// The window is one second long and ends with the current bucket. If callers count a pass only when CanPass or
// TryOccupyNext has allowed it, the window never contains more passes than allowed. But a second that begins in the
// middle of a bucket can contain up to twice as many passes. For example, with 2 buckets in a second and 10 passes
// allowed, ten calls may pass at 9.4 s. Ten more may pass at 10.0 s, because the window then begins at 9.5 s. The
// second from 9.4 s to 10.4 s contains all twenty. A span that is one bucket shorter than a second never contains more
// passes than allowed, wherever it begins. More buckets in a second are therefore stricter.
//
// A strict quota has a window that is one bucket longer than a second: it begins one bucket earlier. A second then
// never contains more passes than allowed, wherever it begins. The price is throughput. With n buckets in a second, the
// window has n+1 buckets. Under constant overload, only n/(n+1) of the allowed calls pass in a second.
//
// All seconds here are seconds of the timeline. While the timeline slews to follow the wall clock, its seconds are up
// to 1 % shorter or longer.
//
// Quotas can share their ring of passes, see [Quota.With]. A call then counts once for several limits.
//
// Create a Quota with [NewQuota]. A Quota is not safe for concurrent use. CanPass costs two comparisons while no passes
// are borrowed. The first method call in a bucket also scans all buckets of the ring.
type Quota struct {
	*passes
	allowed int64 // number of passes that the quota allows in its window
	strict  int   // number of buckets by which the window is longer than a second: 1 in a strict quota, otherwise 0
}

// passes is the ring of passes of one or several quotas. The ring covers the strict window that ends with the current
// bucket, and the later buckets from which calls may borrow.
type passes struct {
	ring     leap.Array[int64]
	ahead    time.Duration // time from the start of the current bucket to newest()
	at       time.Duration // start of the current bucket
	open     *int64        // points to the passes of the current bucket
	sums     [2]int64      // passes of the window, and of the strict window
	borrowed int64         // passes borrowed from later buckets
}

// NewQuota returns a quota for statistics with the given Config. The parameter allowed is the number of passes that the
// quota allows in a second. A negative number is taken as 0.
func NewQuota(config *Config, allowed int64, strict bool) *Quota {
	p := newPasses(config.second.Length())
	return (&Quota{passes: &p}).With(allowed, strict)
}

// newPasses returns an empty ring of passes. Its buckets have the given length.
func newPasses(length time.Duration) passes {
	ahead := max(length, OccupyTimeout.Truncate(length))
	span := time.Second + length + ahead
	ring, err := leap.NewArray[int64](span, int(span/length))
	if err != nil {
		panic(err) // impossible: the buckets of a Config divide a second evenly
	}
	return passes{ring: ring, ahead: ahead, at: beforeAll}
}

// With returns another quota that shares the ring of passes with q. The parameter allowed is the number of passes that
// the new quota allows in a second; a negative number is taken as 0. If strict is true, the window of the new quota is
// one bucket longer than a second.
func (q *Quota) With(allowed int64, strict bool) *Quota {
	x := &Quota{passes: q.passes, allowed: max(allowed, 0)}
	if strict {
		x.strict = 1
	}
	return x
}

// Add adds the passes in the ring of o to the ring of q, including borrowed passes. The quota of a new limit can thus
// start with passes that another quota has counted.
func (q *Quota) Add(o *Quota) {
	q.advanceTo(o.at)
	for at, b := range o.ring.Window(o.newest(), o.ring.Span()) {
		q.addTo(at, *b)
	}
	q.sumWindows()
}

// addTo adds n passes to the given bucket. If the ring does not contain this bucket, addTo does nothing.
func (q *passes) addTo(bucket time.Duration, n int64) {
	if b := q.ring.At(bucket); b != nil {
		*b = saturate(*b, n)
	}
}

// newest returns the start of the last bucket from which calls may borrow.
func (q *passes) newest() time.Duration { return q.at + q.ahead }

// span returns the length of the window of q.
func (q *Quota) span() time.Duration { return time.Second + time.Duration(q.strict)*q.ring.Length() }

// beforeAll is a line time before every bucket.
const beforeAll = time.Duration(-1) << 62

// Passes returns the passes in the window of q that ends with the given bucket.
func (q *Quota) Passes(bucket time.Duration) int64 {
	q.advanceTo(bucket)
	return q.sums[q.strict]
}

// Waiting returns the passes borrowed from buckets after the given bucket.
func (q *Quota) Waiting(bucket time.Duration) int64 {
	q.advanceTo(bucket)
	return q.borrowed
}

// CanPass reports whether the quota allows n more passes in the given bucket. Passes that were borrowed from later
// buckets count, too: CanPass checks every window that contains the given bucket.
func (q *Quota) CanPass(bucket time.Duration, n int64) bool {
	q.advanceTo(bucket)
	return n <= q.allowed-q.sums[q.strict] && (q.borrowed == 0 || q.fits(bucket, n))
}

// Pass counts n passes in the given bucket, even if the quota does not allow them.
func (q *Quota) Pass(bucket time.Duration, n int64) {
	q.advanceTo(bucket)
	*q.open = saturate(*q.open, n)
	q.sums[0], q.sums[1] = saturate(q.sums[0], n), saturate(q.sums[1], n)
}

// TryOccupyNext returns the first later bucket that can lend n passes, and true. The parameter current is the current
// bucket. The result is not before the bucket earliest. A bucket can lend n passes if, with these passes, no window
// that contains the bucket has more passes than allowed.
//
// TryOccupyNext returns false if no such bucket begins within [OccupyTimeout] after the start of the current bucket. If
// buckets are longer than OccupyTimeout, it considers the bucket that follows the current one anyway. The formula is
// Sentinel's (StatisticNode.tryOccupyNext), but TryOccupyNext also applies it to the windows that end after the bucket.
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

// Fill sets the passes of q to the passes of all leaves of v at the reading now, including borrowed passes. A limit
// that is added while the service runs starts with these passes.
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

// Borrow counts n passes as borrowed from the given bucket. This bucket is a result of TryOccupyNext of q or of another
// quota. The parameter current is the current bucket, which must be earlier.
func (q *Quota) Borrow(current, bucket time.Duration, n int64) {
	q.advanceTo(current)
	q.addTo(bucket, n)
	q.borrowed = saturate(q.borrowed, n)
}

// GiveBack removes n of the passes that Borrow has counted in the given bucket.
func (q *Quota) GiveBack(bucket time.Duration, n int64) {
	if b := q.ring.At(bucket); b != nil {
		*b = max(*b-n, 0)
		q.sumWindows()
	}
}

// fits reports whether the given bucket can take n more passes: with them, no window that contains this bucket may have
// more passes than allowed.
func (q *Quota) fits(bucket time.Duration, n int64) bool {
	length := q.ring.Length()
	for end := bucket; end <= min(bucket+q.span()-length, q.newest()); end += length {
		if n > q.allowed-q.window(end, q.span()) {
			return false
		}
	}
	return true
}

// window returns the passes in the window that ends with the given bucket and has the length span. A bucket that has
// not begun contains only borrowed passes.
func (q *passes) window(bucket, span time.Duration) (sum int64) {
	for _, b := range q.ring.Window(bucket, span) {
		sum = saturate(sum, *b)
	}
	return sum
}

// advanceTo makes the given bucket the current one. If the current bucket is the same or later, advanceTo does nothing.
func (q *passes) advanceTo(bucket time.Duration) {
	if bucket > q.at {
		q.turnTo(bucket)
	}
}

// turnTo makes the given bucket the current one. From the start of the strict window to newest(), it opens all buckets
// that the ring does not contain yet.
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

// sumWindows computes the sums of the windows and the borrowed passes, so that later method calls in the same bucket
// need no scan of the ring. Pass and Borrow update these sums themselves. Add, Fill, GiveBack and turnTo call
// sumWindows after they have changed the ring.
func (q *passes) sumWindows() {
	q.sums = [2]int64{q.window(q.at, time.Second), q.window(q.at, time.Second+q.ring.Length())}
	q.borrowed = q.window(q.newest(), q.ahead)
}
