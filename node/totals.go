package node

import "github.com/windowstat/windowstat/leap"

// CountsBefore returns everything that was counted before the second with this index, which must be sealed, or open, since the view
// began: what a running total has at the beginning of that second. The shortest and the longest response time are not in it. It
// reports false if that is not known any more, because the records from so long ago are not kept. It costs a lock of each leaf, and
// a look at the records from that second on.
func (v *View) CountsBefore(index int64) (sum Counts, known bool) {
	open := v.shape.opened()
	leaves, removed := v.all()
	if index > open.Index || removed != nil && index <= removed.last {
		return sum, false
	}
	if removed != nil {
		sum.add(&removed.total)
	}
	known = true
	for _, s := range leaves {
		known = s.addCountsBefore(index, open.Start, &sum) && known
	}
	sum.RTMin, sum.RTMax = 0, 0
	return sum, known
}

// addCountsBefore adds everything before the second with this index to sum. The second that starts at the reading open is open by now.
// It reports whether all of it is known.
func (s *Statistic) addCountsBefore(index int64, open leap.Reading, sum *Counts) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	r := s.rings
	if r == nil {
		return true
	}
	before := r.total // which has the buckets of the open second that are over
	for _, b := range r.window.Window(s.at, s.at-secondAt(s.index)+s.first.shape.second.Length()) {
		before.sub(b)
	}
	s.eachRecord(index, s.index, func(_ int64, b []byte) {
		var rec sealed
		rec.unpack(b, s.first.shape.perSec, nil)
		before.sub(&rec.Counts)
	})
	sum.add(&before)
	return s.known(index)
}

// sub subtracts counts that are a part of c. Totals that have stopped at the largest int64 do not fall below 0. Response times keep
// their range.
func (c *Counts) sub(o *Counts) {
	c.Pass, c.Block = max(c.Pass-o.Pass, 0), max(c.Block-o.Block, 0)
	c.Complete, c.Exception = max(c.Complete-o.Complete, 0), max(c.Exception-o.Exception, 0)
	c.OccupiedPass, c.RTSum = max(c.OccupiedPass-o.OccupiedPass, 0), max(c.RTSum-o.RTSum, 0)
}
