package node

import (
	"math"

	"github.com/windowstat/windowstat/leap"
)

// Retire closes s to new calls and reports whether it did. The parameter idleFrom is the index of a second. Retire
// closes s only if all of these conditions hold at the reading now:
//
//   - No call is in flight or waiting.
//   - The second idleFrom has begun, and s has recorded nothing since it began.
//   - s itself began before the second idleFrom.
//   - s is not retired yet.
//
// If s had passes in the second before idleFrom, Retire may also return false, because the result of
// [Statistic.LastUsed] may be one second too late.
//
// The records of a retired statistic stay readable and never change. After Retire has returned true, the caller must
// remove s from its views with [View.Remove], which keeps the totals.
//
// A call enters without a lock, so it may enter while Retire runs. Retire first changes the end marks and then checks
// whether a call has entered. The call first adds itself to the call word and then loads the end mark. Therefore Retire
// finds the call, or the call finds the new end mark, or both:
//
//	Retire                                      a call that enters
//	take all locks; not idle: return false      add 1 to the call word
//	store the closed end mark                   load the end mark
//	not idle: restore it, return false          closed: take the locks, see reconcileEnter
//	return true
//
// If the call finds the closed end mark and s is retired, the call takes its addition back, and Enter returns the zero
// Call. If Retire finds the call, it restores the end marks, and the call continues in the open bucket.
func (s *Statistic) Retire(now leap.Reading, idleFrom int64) bool {
	s.lockAllAt(now)
	defer s.unlockAll()
	if s.retired() || s.second < idleFrom || s.lastUsed() >= idleFrom {
		return false
	}
	// From here on, a call that enters finds closedMark, and waits for the locks.
	for st := range s.stripes {
		st.end.Store(closedMark)
	}
	if s.lastUsed() >= idleFrom { // a call has entered without a lock, and may not have seen closedMark
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

// LastUsed returns the index of the last second in which s had activity. If a call is in flight or waiting at the
// reading now, LastUsed returns the open second. If s never recorded anything, LastUsed returns the second in which s
// began.
//
// The result may be one second too late. If sliding windows contain passes of the last active second but end in the
// next second, the next second has a record, too, and LastUsed returns the next second.
func (s *Statistic) LastUsed(now leap.Reading) int64 {
	s.lockAllAt(now)
	defer s.unlockAll()
	return s.lastUsed()
}

// lastUsed returns the same second as LastUsed, but does not turn s. All locks must be held.
func (s *Statistic) lastUsed() int64 {
	// The open bucket has activity if a call entered, if a call has been in flight since an earlier bucket, or if an
	// event other than an entry was counted.
	for st := range s.stripes {
		entered := st.entered.Load()
		if entered != st.enteredAtStart || st.inFlightAt(entered) != 0 || st.open != (tally{}) {
			return s.second
		}
	}
	// A waiting call is activity in the open second, because it may pass in this second.
	r := s.history
	if len(r.loans) > 0 {
		return s.second
	}
	// If a bucket of the open second has ended and has counts, history.window contains this bucket.
	for range r.window.Window(s.start, s.start-secondStart(s.second)+r.window.Length()) {
		return s.second
	}
	return max(s.since, r.seconds.lastSecond)
}

// retired reports whether s is retired. A retired statistic never turns, because no reading reaches the end of its open
// bucket. mu or the lock of one stripe must be held.
func (s *Statistic) retired() bool { return s.end == math.MaxInt64 }
