package leap

import (
	"errors"
	"fmt"
	"iter"
	"time"
)

// View is a window of another shape over the buckets of an [Array]: a shorter span, in fewer and longer buckets. It
// holds no data. Like the Array it needs its owner's lock. Make one with [Array.View].
type View[B any] struct {
	array        *Array[B]
	span, length time.Duration
}

// View makes a view of n buckets that cover span. It can be exact only if its buckets are made of whole buckets of
// the ring and the ring holds whole views, Sentinel's rule for reusing a statistic; the error says what does not fit.
func (a *Array[B]) View(span time.Duration, n int) (View[B], error) {
	var errs []error
	if n < 1 || span <= 0 {
		return View[B]{}, fmt.Errorf("leap: a view of %d buckets in %v; both must be positive", n, span)
	}
	if span%time.Duration(n) != 0 {
		errs = append(errs, fmt.Errorf("leap: %d buckets do not divide %v evenly", n, span))
	}
	if a.Span()%span != 0 {
		errs = append(errs, fmt.Errorf("leap: a view of %v does not fit the ring's %v a whole number of times", span, a.Span()))
	}
	length := span / time.Duration(n)
	if length < a.length || length%a.length != 0 {
		errs = append(errs, fmt.Errorf("leap: a view's bucket of %v is not made of whole buckets of %v", length, a.length))
	}
	if err := errors.Join(errs...); err != nil {
		return View[B]{}, err
	}
	return View[B]{array: a, span: span, length: length}, nil
}

// Window iterates over the ring's buckets in the view's window that ends with now's bucket, oldest first, each with
// the start of the view's bucket that it is a part of. The window moves on by the ring's buckets, so the oldest of
// the view's buckets may be there in part.
func (v View[B]) Window(now time.Duration) iter.Seq2[time.Duration, *B] {
	return func(yield func(time.Duration, *B) bool) {
		for start, b := range v.array.Window(now, v.span) {
			if !yield(time.Duration(floorDiv(int64(start), int64(v.length)))*v.length, b) {
				return
			}
		}
	}
}
