package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Stripes returns the number of stripes, including the first stripe.
func (s *Statistic) Stripes() int { return 1 + len(s.extra.Load().list()) }

// Grow adds stripes, as contention does.
func (s *Statistic) Grow() { s.grow(s.extra.Load()) }

// Reseed changes the seed of the set of stripes, so that goroutines are distributed over the stripes in another way.
// Contention does the same before it adds stripes, and when it cannot add more stripes.
func (s *Statistic) Reseed() {
	if more := s.extra.Load(); more != nil {
		next := *more
		next.seed = nextSeed(more.seed)
		s.extra.Store(&next)
	}
}

// Stripe returns the position of the stripe of a call in the list of all stripes.
func (c *Call) Stripe() (i int) {
	for st := range c.st.owner.stripes {
		if st == c.st {
			break
		}
		i++
	}
	return i
}

// ReadsUnderMu reports whether readInOneBucket holds Statistic.mu of each leaf while it reads the leaf. Lookups of
// sealed seconds need Statistic.mu.
func (v *View) ReadsUnderMu(now leap.Reading) (under bool) {
	v.readInOneBucket(now, func() { under = true }, func(s *Statistic) {
		if s.mu.TryLock() {
			s.mu.Unlock()
			under = false
		}
	})
	return under
}

// Bucket returns the counts of one bucket of the second window at the reading now. If back is 0, this is the open
// bucket. If back is 1, it is the bucket before the open one.
func (v *View) Bucket(now leap.Reading, back int) (c Counts) {
	v.readInOneBucket(now, func() { c = Counts{} }, func(s *Statistic) {
		var b Counts
		if back == 0 {
			b, _ = s.openCounts()
		} else if p := s.history.window.At(s.start - time.Duration(back)*s.first.config.second.Length()); p != nil {
			b = *p
		}
		c.add(&b)
	})
	return c
}

// Sum returns the counts of the seconds [from, to). It also reports whether all of these seconds are sealed and all of
// their histograms are kept.
func (v *View) Sum(from, to int64) (sum Counts, whole bool) {
	var h Histogram
	whole = v.Histogram(from, to, &h)
	sum, _ = v.CountsBefore(to)
	before, _ := v.CountsBefore(from)
	sum.sub(&before)
	sum.Complete, sum.RTSum, sum.RTMin, sum.RTMax = h.count, h.sum, h.min, h.max
	return sum, whole
}
