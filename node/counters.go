package node

import (
	"slices"
	"sync/atomic"
)

// SetCounters makes the counters in list follow s. A counter includes the number of calls of s that are in flight or
// waiting; this number is the share of s. SetCounters adds the current share to each counter, and each later entry and
// exit changes the counters. A limit on concurrency then reads one counter instead of many statistics. If one counter
// follows several statistics, it contains the sum of their shares.
//
// If a counter was set before and is not in list, SetCounters subtracts the share of s from it. With an empty list, s
// has no counters, and its calls have no extra cost. SetCounters does nothing if s is retired.
//
//	stripe 1   3 in flight, 2 loans waiting   reported 5   \
//	stripe 2   1 in flight                    reported 1   / counter: 6, and the share of other statistics
//
// A stripe stores the number that it has added to the counters so far: its reported number. At each entry and each
// exit, the stripe of the call computes how many of its calls are in flight. It adds the difference from its reported
// number to the counters. This happens under the lock of the stripe. While s has counters, all end marks have the bit
// slowPathBit: the entry of a call then takes the lock, and has changed the counters before Enter returns. An entry
// changes a counter with a single addition, and so does an exit. A counter therefore includes a call without
// interruption from its entry to its exit.
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
	// counters. A counter that is in both lists loses the share and regains it while all stripe locks are held.
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

// updateCounters computes the number of calls in flight of st, minus the number that st has reported before. It adds
// this difference to all counters. st.mu must be held.
func (st *stripe) updateCounters() {
	s := st.owner
	if s.counters == nil {
		return
	}
	inFlight := uint32(st.inFlightNow())
	// Calls that wait for a later bucket count as in flight here. They belong to no stripe, so the first stripe reports
	// them.
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
