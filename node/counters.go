package node

import (
	"slices"
	"sync/atomic"
)

// SetCounters makes the counters in list follow s. Each counter contains the number of calls of s that are in flight or
// waiting: SetCounters adds the current number, and each later entry and exit changes the counter. A limit on
// concurrency then reads one counter instead of many statistics. One counter may follow several statistics, and
// contains the sum of their calls. The calls of one statistic are its share of the counter.
//
// If a counter was set before and is not in list, SetCounters removes the share of s from it. With an empty list, s has
// no counters, and its calls have no extra cost. SetCounters does nothing if s is retired.
//
//	stripe 1   3 in flight, 2 loans waiting   reported 5   \
//	stripe 2   1 in flight                    reported 1   / counter: 6, and the share of other statistics
//
// At each entry and each exit, the stripe of the call compares its calls in flight with the number that it has reported
// to the counters, and reports the difference. This happens under the lock of the stripe. While s has counters, the end
// marks of all stripes make calls enter under the lock, so the counters include a call before Enter returns. The entry
// and the exit of a call change a counter with one addition each. A reader of the counter therefore sees each call from
// its entry to its exit.
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
	// Subtract the share of s from the old counters. The loop at the end of the function adds the share to the new
	// counters. A counter that is old and new loses the share and regains it while all stripe locks are held.
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

// updateCounters adds a difference to all counters: the calls in flight of st, minus the number of calls that st has
// reported before. st.mu must be held.
func (st *stripe) updateCounters() {
	s := st.owner
	if s.counters == nil {
		return
	}
	inFlight := uint32(st.inFlightNow())
	// Waiting calls count as in flight. They belong to no stripe, so the first stripe reports them.
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
