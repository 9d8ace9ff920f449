package node

import (
	"slices"
	"sync/atomic"
)

// closer is the bit of a stripe's end that makes writers look closer: the statistic is watched, or retired.
const closer = 1

// mark is the end of the open bucket as stripes keep it: its lowest bit says whether writers must look closer. It may be
// too low by one, never too high: a writer that takes the bucket for over finds the end itself.
func (s *Statistic) mark() int64 {
	if len(s.watchers) > 0 {
		return (int64(s.end) - 1) | closer
	}
	return int64(s.end) &^ closer
}

// Watch makes the watchers count the calls that are in flight or wait for a bucket to come: they get those there are now,
// and from then on one more for each call that enters, however it does, and one less for each that leaves. A
// watcher may count for several statistics. Watchers that were set before and are not among these lose what they counted
// here. A statistic that is retired has none.
//
// A call that enters without a lock adds first and then looks for watchers; Watch sets them first and then looks at the calls.
// So one of them sees the other, and if both do, the call is told once.
func (s *Statistic) Watch(watchers ...*atomic.Int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || slices.Equal(s.watchers, watchers) {
		return
	}
	s.lockStripes()
	defer s.unlockStripes()
	var told int64
	for st := range s.stripes {
		told += int64(int32(st.told))
		st.told = 0
	}
	for _, w := range s.watchers {
		w.Add(-told)
	}
	s.watchers = slices.Clone(watchers)
	for st := range s.stripes {
		st.end.Store(s.mark())
		st.tell()
	}
}

// tell tells the watchers of the calls that came and went since they were told last. Holds mu.
func (st *stripe) tell() {
	s := st.owner
	if len(s.watchers) == 0 {
		return
	}
	flying := st.entered.Load() - st.exited
	if st == &s.first {
		flying += s.borrowers
	}
	if n := int32(flying - st.told); n != 0 {
		for _, w := range s.watchers {
			w.Add(int64(n))
		}
		st.told = flying
	}
}
