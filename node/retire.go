package node

import (
	"math"

	"github.com/windowstat/windowstat/leap"
)

// Retire ends the statistic, if at the reading now nothing is in flight or waiting and nothing was recorded in the
// second with the index since or later, and reports whether it did. A retired statistic records nothing; its records can
// be read as before, and never change. The owner removes it from its views, which keep its totals: see [View.Remove].
func (s *Statistic) Retire(now leap.Reading, since int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	if s.retired || s.usedSince(since) {
		return false
	}
	s.lockStripes()
	defer s.unlockStripes()
	for st := range s.stripes {
		st.end.Store(closed)
	}
	for st := range s.stripes {
		if entered := st.entered.Load(); entered != st.base || st.inFlightAt(entered) != 0 || st.open != (tally{}) {
			for st := range s.stripes {
				st.end.Store(s.mark())
			}
			return false
		}
	}
	s.retired, s.end = true, math.MaxInt64
	return true
}

// usedSince reports whether anything was recorded in the second with this index or later, the open bucket aside. Holds
// mu.
func (s *Statistic) usedSince(index int64) bool {
	if s.since >= index || s.index < index {
		return true
	}
	r := s.rings
	if r == nil {
		return false
	}
	return len(r.loans) > 0 || r.minute.last >= index || r.openUsed(s)
}

// LastUsed is the index of the last second in which anything was recorded: the one that is open at the reading now if a call
// is in flight or waits, and the one in which the statistic began if nothing ever was.
func (s *Statistic) LastUsed(now leap.Reading) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	s.lockStripes()
	defer s.unlockStripes()
	for st := range s.stripes {
		if entered := st.entered.Load(); entered != st.base || st.inFlightAt(entered) != 0 || st.open != (tally{}) {
			return s.index
		}
	}
	last := s.since
	if r := s.rings; r != nil {
		if len(r.loans) > 0 || r.openUsed(s) {
			return s.index
		}
		last = max(last, r.minute.last)
	}
	return last
}

// openUsed reports whether a bucket of the open second that is over has counts. Only those with counts are opened.
func (r *rings) openUsed(s *Statistic) bool {
	for range r.window.Window(s.at, s.at-secondAt(s.index)+r.window.Length()) {
		return true
	}
	return false
}

// overtaken finishes a call that entered by st without its lock while the bucket turned, counters were set, or the statistic was
// retired. That takes the call back, and overtaken reports true.
func (s *Statistic) overtaken(st *stripe, now leap.Reading) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired {
		st.entered.Add(-entry(now))
		return true
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.begin(now)
	st.tell()
	return false
}

// Retired reports whether the statistic was retired.
func (s *Statistic) Retired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retired
}
