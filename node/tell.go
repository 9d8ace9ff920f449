package node

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/windowstat/windowstat/leap"
)

// slowPath is the bit of a stripe's mark that makes calls enter under its lock: the statistic tells counters, or is closed.
const slowPath = 1

// closed is the mark of stripes whose bucket is turned right now, or whose statistic is retired: every reading is after it.
const closed = math.MinInt64 | slowPath

// tells reports whether the statistic tells counters.
func (st *stripe) tells() bool {
	mark := st.end.Load()
	return mark&slowPath != 0 && mark != closed
}

// mark is the end of the open bucket as stripes keep it: twice the reading, so that the lowest bit can say whether writers
// must take the slow path.
func (s *Statistic) mark() int64 {
	m := int64(s.end) << 1
	if s.observers != nil {
		m |= slowPath
	}
	return m
}

// ends is the reading at which the open bucket ends.
func (st *stripe) ends() leap.Reading { return reading(st.end.Load()) }

// reading is what a mark is of.
func reading(mark int64) leap.Reading { return leap.Reading(mark >> 1) }

// observers are the counters that a statistic tells of its calls in flight.
type observers struct{ list []*atomic.Int64 }

func (o *observers) counters() []*atomic.Int64 {
	if o == nil {
		return nil
	}
	return o.list
}

// Tell makes counters count the calls that are in flight or wait for a bucket to come: they get those there are now, and from
// then on one more for each call that enters, however it does, and one less for each that leaves. A counter may count for
// several statistics. Counters that were set before and are not among these lose what they counted here. A statistic that is
// retired has none.
//
// A call that enters without a lock adds first and then looks for counters; Tell sets them first and then looks at the calls.
// So one of them sees the other, and if both do, the call is told once.
func (s *Statistic) Tell(list ...*atomic.Int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || slices.Equal(s.observers.counters(), list) {
		return
	}
	s.lockStripes()
	defer s.unlockStripes()
	var told int64
	for st := range s.stripes {
		told += int64(int32(st.told))
		st.told = 0
	}
	for _, counter := range s.observers.counters() {
		counter.Add(-told)
	}
	if s.observers = nil; len(list) > 0 {
		s.observers = &observers{slices.Clone(list)}
	}
	for st := range s.stripes {
		st.end.Store(s.mark())
		st.tell()
	}
}

// tell tells the counters of the calls that came and went since they were told last. Holds mu.
func (st *stripe) tell() {
	s := st.owner
	if s.observers == nil {
		return
	}
	inFlight := uint32(st.inFlightNow())
	if st == &s.first {
		inFlight += s.borrowers
	}
	if n := int32(inFlight - st.told); n != 0 {
		for _, counter := range s.observers.list {
			counter.Add(int64(n))
		}
		st.told = inFlight
	}
}
