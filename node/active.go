package node

import (
	"math"

	"github.com/windowstat/windowstat/leap"
)

// LastActive returns the last second before the one with this index that was not idle, see [MetricNode.Idle]: a call began,
// ended, was refused, or was in flight. If there is none it returns the second before the view began. It is exact for every
// second that can be read, also if the last active one cannot be read any more; before an older second all are taken to be
// active. For a view that has been idle since it costs a lock of each leaf; otherwise records are looked at, the newest first.
func (v *View) LastActive(before int64) (index int64) {
	open := v.shape.opened()
	last := v.since - 1
	v.mu.Lock()
	leaves := v.list()
	if v.removed != nil {
		last = max(last, v.removed.active)
	}
	v.mu.Unlock()
	for _, s := range leaves {
		last = max(last, s.openLastActive(min(before, open.Index), open.Start))
	}
	return min(last, before-1)
}

// openLastActive is lastActive, where the second that starts at the reading open is open by now.
func (s *Statistic) openLastActive(before int64, open leap.Reading) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	return s.lastActive(before)
}

// lastActive is the last second before one in which something happened or was in flight, the least number if there is none.
func (s *Statistic) lastActive(before int64) int64 {
	r := s.rings
	if r == nil {
		return math.MinInt64
	}
	before = min(before, s.index)
	inFlight := s.began
	if before <= r.minute.last {
		inFlight = s.inFlightAfter(before - 1)
	}
	if inFlight > 0 {
		return before - 1
	}
	// Nothing was in flight since the last record.
	index, record := r.minute.before(before)
	if record == nil {
		index, record = r.history.before(before)
	}
	switch {
	case record == nil:
		return r.active
	case onlySlides(record, s.first.shape.perSec):
		return index - 1
	}
	return index
}
