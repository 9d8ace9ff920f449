package leap

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"
)

// MinSpan and MaxSpan limit the span of a ring: the time that its buckets cover. MinLength is the smallest length of a
// bucket.
const (
	MinSpan   = 10 * time.Millisecond
	MaxSpan   = time.Hour
	MinLength = time.Millisecond
)

// Array is a ring of n buckets of equal length that together cover a span of time.
//
// Times are durations since an epoch that the owner of the Array chooses; [Timeline] uses 1970. The ring only moves
// forward: a write at a time before the newest bucket goes to the newest bucket. The first Open allocates the buckets,
// so an unused ring takes only a few words of memory.
//
// The zero value is not usable; create an Array with [NewArray]. An Array is not safe for concurrent use. Open and At
// cost two divisions each. An iteration over a window costs one comparison of indexes for each bucket of the window.
type Array[B any] struct {
	length time.Duration
	n      int
	slots  []slot[B]
	newest int64 // index of the newest bucket; undefined while slots is nil
}

// slot holds a bucket and its index. Both fields always change together.
type slot[B any] struct {
	index  int64
	bucket B
}

// vacant is the index in a slot that has never held a bucket. No time has this index, so no lookup finds such a slot.
const vacant = math.MinInt64

// NewArray returns a ring of n buckets that together cover the given span. The span must be from [MinSpan] to
// [MaxSpan]. The number n must be at least 1 and divide the span evenly, and each bucket must be at least [MinLength]
// long. The error names every invalid argument.
func NewArray[B any](span time.Duration, n int) (Array[B], error) {
	var errs []error
	if span < MinSpan || span > MaxSpan {
		errs = append(errs, fmt.Errorf("leap: span %v is not between %v and %v", span, MinSpan, MaxSpan))
	}
	switch {
	case n < 1:
		errs = append(errs, fmt.Errorf("leap: %d buckets; at least 1 is needed", n))
	case span%time.Duration(n) != 0:
		errs = append(errs, fmt.Errorf("leap: %d buckets do not divide %v evenly", n, span))
	case span > 0 && span/time.Duration(n) < MinLength:
		errs = append(errs, fmt.Errorf("leap: %d buckets in %v are shorter than %v", n, span, MinLength))
	}
	if err := errors.Join(errs...); err != nil {
		return Array[B]{}, err
	}
	return Array[B]{length: span / time.Duration(n), n: n}, nil
}

// Length returns the length of one bucket.
func (a *Array[B]) Length() time.Duration { return a.length }

// Span returns the time that all buckets cover together.
func (a *Array[B]) Span() time.Duration { return a.length * time.Duration(a.n) }

// Index returns the index of the bucket that covers t. Bucket 0 starts at the epoch; earlier buckets have negative
// indexes.
func (a *Array[B]) Index(t time.Duration) int64 { return floorDiv(int64(t), int64(a.length)) }

// Start returns the start of the bucket that covers t.
func (a *Array[B]) Start(t time.Duration) time.Duration {
	return time.Duration(a.Index(t)) * a.length
}

// Open returns the bucket that covers t. If t is before the newest bucket, Open returns the newest bucket instead. If t
// is after the newest bucket, the bucket that covers t becomes the newest one: Open removes the old bucket from its
// slot, if there is one, and returns an empty bucket.
func (a *Array[B]) Open(t time.Duration) *B {
	index := a.Index(t)
	if a.slots == nil {
		a.slots = make([]slot[B], a.n)
		for i := range a.slots {
			a.slots[i].index = vacant
		}
		a.newest = index
	}
	a.newest = max(a.newest, index)
	s := a.slot(a.newest)
	if s.index != a.newest {
		*s = slot[B]{index: a.newest}
	}
	return &s.bucket
}

// At returns the bucket that covers t, or nil if the ring does not contain that bucket. A bucket is in the ring from
// its first Open until a newer bucket takes its slot. At may therefore return a bucket that is older than the span of
// the ring. If t is within the span that ends with the newest bucket, nil means that the bucket was never opened. The
// owner of the ring can treat such a bucket as empty, because the owner writes only to buckets that it has opened.
func (a *Array[B]) At(t time.Duration) *B {
	if a.slots == nil {
		return nil
	}
	index := a.Index(t)
	if s := a.slot(index); s.index == index {
		return &s.bucket
	}
	return nil
}

// Window iterates over the buckets of a window, oldest first. It yields the start of each bucket and the bucket itself.
// The window ends with the bucket that covers the time now. The length L of the window is span, rounded down to whole
// buckets; it is never longer than the ring. The window contains the opened buckets that start in
// (Start(now) - L, Start(now)]. The bucket that starts at Start(now) - L is outside.
//
//	buckets of 0.5 s, span 1 s, now = 1.2 s
//
//	        0.0       0.5       1.0       1.5
//	         +---------+---------+---------+
//	         |   out   |   in    |   in    |
//	         +---------+---------+---------+
//	                                 ^ now
func (a *Array[B]) Window(now, span time.Duration) iter.Seq2[time.Duration, *B] {
	return func(yield func(time.Duration, *B) bool) {
		if a.slots == nil {
			return
		}
		last := a.Index(now)
		count := min(int64(a.n), int64(span/a.length))
		index := last - count + 1
		for i := a.slotIndex(index); index <= last; index++ {
			s := &a.slots[i]
			if s.index == index && !yield(time.Duration(index)*a.length, &s.bucket) {
				return
			}
			if i++; i == len(a.slots) {
				i = 0
			}
		}
	}
}

// slot returns the slot of the bucket with this index.
func (a *Array[B]) slot(index int64) *slot[B] { return &a.slots[a.slotIndex(index)] }

// slotIndex returns index mod n, which is from 0 to n-1 even for a negative index.
func (a *Array[B]) slotIndex(index int64) int {
	n := int64(a.n)
	i := index % n
	if i < 0 {
		i += n
	}
	return int(i)
}

// floorDiv returns a / b, rounded down; b must be positive. Go's division rounds negative quotients up.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
