package node

import (
	"slices"
	"sync/atomic"
)

// SetCounters makes counters follow the number of calls in flight and waiting, so that a limit on concurrency reads one
// number instead of many statistics. Each counter gets the current number, and changes with each later entry and exit.
// One counter may follow several statistics. Counters of an earlier SetCounters that are not in the list lose the share
// of s. Without counters, calls pay nothing. SetCounters does nothing if s is retired.
//
//	stripe 1   3 in flight, 2 loans waiting   reported 5   \
//	stripe 2   1 in flight                    reported 1   / counter: 6, and the share of other statistics
//
// Each entry and exit reports, under the lock of its stripe, the change since the last report of the stripe. While
// counters are set, the end marks of all stripes make calls enter under the lock, so an entry is reported before it
// returns. The entry and the exit of a call change a counter with one addition each, so a reader of the counter sees
// each call from its entry to its exit.
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
	// Take back the share of s from the earlier counters. The loop at the end reports it to the new ones, so a counter
	// in both lists loses and regains its share while all stripe locks are held.
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

// updateCounters adds the change of the calls in flight since the last report of st to all counters. mu must be held.
func (st *stripe) updateCounters() {
	s := st.owner
	if s.counters == nil {
		return
	}
	inFlight := uint32(st.inFlightNow())
	// Waiting calls count as in flight. The first stripe reports them for the whole statistic.
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
