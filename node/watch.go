package node

import (
	"slices"
	"sync/atomic"

	"github.com/windowstat/windowstat/leap"
)

// closer is the bit of a stripe's mark that makes writers look closer: the statistic is watched, or retired.
const closer = 1

// mark is the end of the open bucket as stripes keep it: twice the reading, so that the lowest bit can say whether writers
// must look closer.
func (s *Statistic) mark() int64 {
	m := int64(s.end) << 1
	if s.watched != nil {
		m |= closer
	}
	return m
}

// ends is the reading at which the open bucket ends.
func (st *stripe) ends() leap.Reading { return leap.Reading(st.end.Load() >> 1) }

// watched is what a watched statistic keeps.
type watched struct{ watchers []*atomic.Int64 }

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
	if s.retired || s.watched == nil && len(watchers) == 0 || s.watched != nil && slices.Equal(s.watched.watchers, watchers) {
		return
	}
	s.lockStripes()
	defer s.unlockStripes()
	var told int64
	for st := range s.stripes {
		told += int64(int32(st.told))
		st.told = 0
	}
	if s.watched != nil {
		for _, w := range s.watched.watchers {
			w.Add(-told)
		}
	}
	if s.watched = nil; len(watchers) > 0 {
		s.watched = &watched{slices.Clone(watchers)}
	}
	for st := range s.stripes {
		st.end.Store(s.mark())
		st.tell()
	}
}

// tell tells the watchers of the calls that came and went since they were told last. Holds mu.
func (st *stripe) tell() {
	s := st.owner
	if s.watched == nil {
		return
	}
	flying := uint32(st.flyingNow())
	if st == &s.first {
		flying += s.borrowers
	}
	if n := int32(flying - st.told); n != 0 {
		for _, w := range s.watched.watchers {
			w.Add(int64(n))
		}
		st.told = flying
	}
}
