package node

import (
	"math"

	"github.com/windowstat/windowstat/leap"
)

// Retire closes s to new calls and reports whether it did. It fails if, at the reading now, a call is in flight or
// waiting, or if s recorded anything in the second with the index since or later. It also fails if the open second is
// before since, or if s is already retired. The records of a retired statistic stay readable and never change. The
// caller must then remove s from its views with [View.Remove], which keeps the totals.
//
// A call enters without a lock, so Retire and an entry may run at the same time. Each first announces itself and then
// checks the other, so at least one of them notices:
//
//	Retire                               a call that enters
//	all locks; idle? no: return false    add 1 to the call word
//	store the closed end mark            load the end mark
//	idle? no: restore it, return false   closed: take the locks, see reconcileEnter
//	retired
//
// If Retire wins, the call takes its addition back and reports that it recorded nothing. If the call wins, Retire
// restores the end marks, and the call continues in the open bucket.
func (s *Statistic) Retire(now leap.Reading, since int64) bool {
	s.lockAllAt(now)
	defer s.unlockAll()
	if s.retired() || s.second < since || s.lastUsed() >= since {
		return false
	}
	// From here on, a call that enters finds the closed mark, and waits for the locks.
	for st := range s.stripes {
		st.end.Store(closedMark)
	}
	if s.lastUsed() >= since { // a call entered without a lock before it could see the new end mark
		for st := range s.stripes {
			st.end.Store(s.endMark())
		}
		return false
	}
	s.end = math.MaxInt64
	if r := s.history; r != emptyHistory {
		s.dropRecords(s.start)
		r.seconds.release()
		r.histograms.release()
	}
	return true
}

// LastUsed returns the index of the last second with activity. This is the open second if a call is in flight or
// waiting, and the first second if nothing was ever recorded.
func (s *Statistic) LastUsed(now leap.Reading) int64 {
	s.lockAllAt(now)
	defer s.unlockAll()
	return s.lastUsed()
}

// lastUsed is LastUsed without turning. All locks must be held.
func (s *Statistic) lastUsed() int64 {
	// The open bucket: calls that entered, calls in flight since earlier buckets, and events other than entries.
	for st := range s.stripes {
		entered := st.entered.Load()
		if entered != st.enteredAtStart || st.inFlightAt(entered) != 0 || st.open != (tally{}) {
			return s.second
		}
	}
	// A waiting call counts as activity now, because it may pass in the open second.
	r := s.history
	if len(r.loans) > 0 {
		return s.second
	}
	// Buckets of the open second that have ended are in the window. Only buckets with counts are there.
	for range r.window.Window(s.start, s.start-secondStart(s.second)+r.window.Length()) {
		return s.second
	}
	return max(s.since, r.seconds.lastSecond)
}

// retired reports whether s is retired: no reading reaches the end of its open bucket, so it never turns again. mu or
// all stripe locks must be held.
func (s *Statistic) retired() bool { return s.end == math.MaxInt64 }
