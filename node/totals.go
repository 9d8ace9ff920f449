package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// CountsBefore returns everything that was counted before the second with this index, which must be sealed, or open, since the view
// began: what a running total has at the beginning of that second. The shortest and the longest response time are not in it. It
// reports false if that is not known any more, because the records from so long ago are not kept. It costs a lock of each leaf, and
// a look at the records from that second on.
func (v *View) CountsBefore(index int64) (Counts, bool) {
	open := v.shape.opened()
	leaves, removed := v.all()
	if index > open.Index || removed != nil && index <= removed.last {
		return Counts{}, false
	}
	var all, later Counts
	if removed != nil {
		all.add(&removed.total)
	}
	known := true
	for _, s := range leaves {
		known = s.addCountsBefore(index, open.Start, &all, &later) && known
	}
	return all.less(&later), known
}

// addCountsBefore adds everything before the open bucket to all, and what of it is in the second with this index or after it to later.
func (s *Statistic) addCountsBefore(index int64, open leap.Reading, all, later *Counts) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	r := s.rings
	if r == nil {
		return true
	}
	all.add(&r.total)
	start := secondAt(s.index)
	for _, b := range r.window.Window(s.at, s.at-start+s.first.shape.second.Length()) { // of the open second, those that are over
		later.add(b)
	}
	s.eachRecord(index, s.index, func(_ int64, b []byte) {
		var rec sealed
		rec.unpack(b, s.first.shape.perSec, nil)
		later.add(&rec.Counts)
	})
	return s.known(index)
}

// less is the counts without those of o, which are a part of them. Totals that have stopped at the largest int64 are never below 0.
func (c *Counts) less(o *Counts) Counts {
	return Counts{
		Pass: max(c.Pass-o.Pass, 0), Block: max(c.Block-o.Block, 0),
		Complete: max(c.Complete-o.Complete, 0), Exception: max(c.Exception-o.Exception, 0),
		OccupiedPass: max(c.OccupiedPass-o.OccupiedPass, 0), RTSum: max(c.RTSum-o.RTSum, time.Duration(0)),
	}
}
