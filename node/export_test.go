package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Stripes is how many stripes the statistic has, the first included.
func (s *Statistic) Stripes() int { return 1 + len(s.extra.Load().list()) }

// Grow adds stripes, as contention does.
func (s *Statistic) Grow() { s.grow(s.extra.Load()) }

// ReadsUnderMu reports whether leaves are read together under mu, as they must be where sealed seconds are looked for.
func (v *View) ReadsUnderMu(now leap.Reading) (under bool) {
	v.readInOneBucket(now, func() { under = true }, func(s *Statistic) {
		if s.mu.TryLock() {
			s.mu.Unlock()
			under = false
		}
	})
	return under
}

// Bucket is the counts of one bucket of the second window at the reading now: back = 0 is the open one, 1 the one
// before it.
func (v *View) Bucket(now leap.Reading, back int) (c Counts) {
	v.readInOneBucket(now, func() { c = Counts{} }, func(s *Statistic) {
		var b Counts
		if back == 0 {
			b, _ = s.openCounts()
		} else if p := s.history.window.At(s.start - time.Duration(back)*s.first.shape.second.Length()); p != nil {
			b = *p
		}
		c.add(&b)
	})
	return c
}

// Sum is the counts of the seconds with indexes from from to before to together, and whether the histogram of all of
// them is known.
func (v *View) Sum(from, to int64) (sum Counts, whole bool) {
	var h Histogram
	whole = v.Histogram(from, to, &h)
	sum, _ = v.CountsBefore(to)
	before, _ := v.CountsBefore(from)
	sum.sub(&before)
	sum.Complete, sum.RTSum, sum.RTMin, sum.RTMax = h.count, h.sum, h.min, h.max
	return sum, whole
}
