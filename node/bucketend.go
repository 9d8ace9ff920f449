package node

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/windowstat/windowstat/leap"
)

// slowPath is the bit of a stripe's mark that makes calls enter under its lock: the statistic has counters, or is closed.
const slowPathBit = 1

// closed is the mark of stripes whose bucket is turned right now, or whose statistic is retired: every reading is after it.
const closedMark = math.MinInt64 | slowPathBit

// hasCounters reports whether the statistic has counters.
func (st *stripe) hasCounters() bool {
	mark := st.end.Load()
	return mark&slowPathBit != 0 && mark != closedMark
}

// mark is the end of the open bucket as stripes keep it: twice the reading, so that the lowest bit can say whether writers
// must take the slow path.
func (s *Statistic) endMark() int64 {
	m := int64(s.end) << 1
	if s.counters != nil {
		m |= slowPathBit
	}
	return m
}

// ends is the reading at which the open bucket ends.
func (st *stripe) bucketEnd() leap.Reading { return endOf(st.end.Load()) }

// reading is what a mark is of.
func endOf(mark int64) leap.Reading { return leap.Reading(mark >> 1) }

// SetCounters makes counters count the calls that are in flight or wait for a bucket to come: they get those there are now, and
// from then on one more for each call that enters, however it does, and one less for each that leaves. A counter may count for
// several statistics. Counters that were set before and are not among these lose what they counted here. A statistic that is
// retired has none.
func (s *Statistic) SetCounters(list ...*atomic.Int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var before []*atomic.Int64
	if s.counters != nil {
		before = *s.counters
	}
	if s.retired() || slices.Equal(before, list) {
		return
	}
	s.lockStripes()
	defer s.unlockStripes()
	var counted int64
	for st := range s.stripes {
		counted += int64(int32(st.reported))
		st.reported = 0
	}
	for _, counter := range before {
		counter.Add(-counted)
	}
	if s.counters = nil; len(list) > 0 {
		own := slices.Clone(list)
		s.counters = &own
	}
	for st := range s.stripes {
		st.end.Store(s.endMark())
		st.updateCounters()
	}
}

// updateCounters adds the calls that came and went since the last time to the counters. Holds mu.
func (st *stripe) updateCounters() {
	s := st.owner
	if s.counters == nil {
		return
	}
	inFlight := uint32(st.inFlightNow())
	if st == &s.first {
		inFlight += s.borrowers
	}
	if n := int32(inFlight - st.reported); n != 0 {
		for _, counter := range *s.counters {
			counter.Add(int64(n))
		}
		st.reported = inFlight
	}
}

// Retire ends the statistic, if at the reading now nothing is in flight or waiting and nothing was recorded in the
// second with the index since or later, and reports whether it did. A retired statistic records nothing; its records can
// be read as before, and never change. The owner removes it from its views, which keep its totals: see [View.Remove].
func (s *Statistic) Retire(now leap.Reading, since int64) bool {
	s.lockAllAt(now)
	defer s.unlockAll()
	if s.retired() || s.second < since || s.lastUsed() >= since {
		return false
	}
	for st := range s.stripes {
		st.end.Store(closedMark)
	}
	if s.lastUsed() >= since { // a call has entered without a lock meanwhile
		for st := range s.stripes {
			st.end.Store(s.endMark())
		}
		return false
	}
	s.end = math.MaxInt64
	return true
}

// LastUsed is the index of the last second in which anything was recorded: the one that is open at the reading now if a call
// is in flight or waits, and the one in which the statistic began if nothing ever was.
func (s *Statistic) LastUsed(now leap.Reading) int64 {
	s.lockAllAt(now)
	defer s.unlockAll()
	return s.lastUsed()
}

// lastUsed is LastUsed. Holds all locks.
func (s *Statistic) lastUsed() int64 {
	for st := range s.stripes {
		if entered := st.entered.Load(); entered != st.enteredAtStart || st.inFlightAt(entered) != 0 || st.open != (tally{}) {
			return s.second
		}
	}
	r := s.history
	if len(r.loans) > 0 {
		return s.second
	}
	// Of the open second there are the buckets that are over. Only those with counts are opened.
	for range r.window.Window(s.start, s.start-secondStart(s.second)+r.window.Length()) {
		return s.second
	}
	return max(s.since, r.seconds.lastSecond)
}

// overtaken finishes a call that entered by st without its lock while the bucket turned, counters were set, or the statistic was
// retired. That takes the call back, and overtaken reports true.
func (s *Statistic) reconcileEnter(st *stripe, now leap.Reading) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired() {
		st.entered.Add(-entryWord(now))
		return true
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.effectiveEntry(now)
	st.updateCounters()
	return false
}

// retired reports whether the statistic was retired. Holds mu, or all stripes' locks.
func (s *Statistic) retired() bool { return s.end == math.MaxInt64 }
