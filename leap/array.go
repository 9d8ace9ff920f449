package leap

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"
)

// Limits of a ring's span and of the length of one bucket.
const (
	MinSpan   = 10 * time.Millisecond
	MaxSpan   = time.Hour
	MinLength = time.Millisecond
)

// Array is a ring of n buckets of one length that together cover a span of time.
//
// Times are durations since the epoch of the owner's choice; [Timeline] uses 1970. The ring moves forward only: a
// time behind its newest bucket is served by the newest bucket. Memory for the buckets is taken when the first one
// is opened, so a ring that is never used costs a few words.
//
// The zero value must not be used: make one with [NewArray]. An Array is not safe for
// concurrent use. Open and At cost one division; iterating costs one comparison for each slot.
type Array[B any] struct {
	length time.Duration
	n      int
	slots  []slot[B]
	newest int64 // index of the newest bucket; meaningless while slots is nil
}

// slot keeps a bucket beside its index: state and its time change as one.
type slot[B any] struct {
	index  int64
	bucket B
}

// vacant is the index of a slot that was never used: no time has it.
const vacant = math.MinInt64

// NewArray makes a ring of n buckets that cover span. The error names every argument that is out of range: a span
// from [MinSpan] to [MaxSpan], n of at least 1 that divides it into buckets of at least [MinLength].
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

// Length is how long one bucket is.
func (a *Array[B]) Length() time.Duration { return a.length }

// Span is the time that all the buckets cover together.
func (a *Array[B]) Span() time.Duration { return a.length * time.Duration(a.n) }

// Index is the number of the bucket that covers t, counted from the epoch; negative before it.
func (a *Array[B]) Index(t time.Duration) int64 { return floorDiv(int64(t), int64(a.length)) }

// Start is when the bucket that covers t begins.
func (a *Array[B]) Start(t time.Duration) time.Duration {
	return time.Duration(a.Index(t)) * a.length
}

// Open returns the bucket that covers t. If the ring has not been there yet, the slot's old content is cleared
// first and the ring moves on to it. A t behind the newest bucket gets the newest bucket.
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

// At returns the bucket that covers t if the ring holds it, even where t is more than a span ago: a bucket stays
// until a newer one needs its slot. It returns nil for a bucket that was never opened, which an owner who opens
// buckets only to write to them may read as an empty one.
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

// Window iterates over the buckets of the window of the given span that ends with now's bucket, oldest first: those
// that were opened and start in (Start(now) - span, Start(now)]. So the bucket that is exactly one span old is out.
// A span that is longer than the ring's gets what the ring has.
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

func (a *Array[B]) slot(index int64) *slot[B] { return &a.slots[a.slotIndex(index)] }

func (a *Array[B]) slotIndex(index int64) int {
	n := int64(a.n)
	i := index % n
	if i < 0 {
		i += n
	}
	return int(i)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
