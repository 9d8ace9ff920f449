package node

import (
	"math"
	"slices"

	"github.com/windowstat/windowstat/leap"
)

// Histogram sets h to the histogram of the response times in the sealed seconds with indexes from from to before to.
// It reports false if one of them is not sealed, or its histogram is not kept any more; h then has the others.
func (v *View) Histogram(from, to int64, h *Histogram) bool {
	_, whole := v.histogram(from, to, h)
	return whole
}

// histogram is Histogram, and sums the counts of the same seconds.
func (v *View) histogram(from, to int64, h *Histogram) (sum Counts, whole bool) {
	h.reset(v.shape.layout)
	open := v.shape.opened()
	leaves, last := v.known()
	whole = to <= open.Index && (max(from, v.since) > last || from >= to)
	to = min(to, open.Index)
	for _, s := range leaves {
		whole = s.addHistogram(from, to, open.Start, h, &sum) && whole
	}
	h.measure(&sum)
	return sum, whole
}

// addHistogram adds the response times in the seconds from from to before to to h, and their counts to sum. The second that
// starts at the reading open is open by now. It reports whether all of these seconds are known.
func (s *Statistic) addHistogram(from, to int64, open leap.Reading, h *Histogram, sum *Counts) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	if s.retired() {
		to = min(to, s.index) // nothing happened later
	}
	from = max(from, s.since) // before that there was nothing
	oldest := s.oldest()
	whole := to <= s.index && (from >= to || from >= oldest)
	s.eachHistogram(max(from, oldest), to, func(_ int64, rec sealed, cells []byte) {
		s.first.shape.layout.addCells(h.cells, &rec, cells)
		sum.add(&rec.Counts)
	})
	return whole
}

// Histograms sets each of hs to the histogram of the response times in one sealed second: the first to that of the
// second from, and so on. It returns the first second from which on all are known; those before it are empty. It costs
// less than to ask for each.
func (v *View) Histograms(from int64, hs []Histogram) (known int64) {
	open := v.shape.opened()
	leaves, last := v.known()
	for i := range hs {
		hs[i].reset(v.shape.layout)
	}
	known = max(from, last+1)
	for _, s := range leaves {
		known = max(known, s.addHistograms(from, open.Start, hs))
	}
	for i := range hs {
		if h := &hs[i]; from+int64(i) < known {
			h.reset(v.shape.layout)
		} else if h.count == 0 {
			h.to = 0
		}
	}
	return known
}

// addHistograms adds the histograms of the seconds from from on. The second that starts at the reading open is open by
// now. It returns the first second from which on all are known.
func (s *Statistic) addHistograms(from int64, open leap.Reading, hs []Histogram) (known int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	s.eachHistogram(from, from+int64(len(hs)), func(i int64, rec sealed, cells []byte) {
		s.first.shape.layout.addCells(hs[i-from].cells, &rec, cells)
		hs[i-from].measure(&rec.Counts)
	})
	return s.oldestHistogram()
}

// CountsBefore returns everything that was counted before the second with this index, which must be sealed, or open, since the view
// began: what a running total has at the beginning of that second. The shortest and the longest response time are not in it. It
// reports false if that is not known any more, because the records from so long ago are not kept. It costs a lock of each leaf, and
// a look at the records from that second on.
func (v *View) CountsBefore(index int64) (sum Counts, known bool) {
	return v.before(index, nil, nil)
}

// HistogramBefore sets h to the histogram of the response times of [View.CountsBefore]. It reports false if that is not known any more:
// histograms are kept for a shorter time than records.
func (v *View) HistogramBefore(index int64, h *Histogram) bool {
	h.reset(v.shape.layout)
	later := make([]int64, len(h.cells))
	sum, known := v.before(index, h.cells, later)
	for c, n := range later {
		h.cells[c] = max(h.cells[c]-n, 0)
	}
	h.count, h.sum = sum.Complete, sum.RTSum
	h.from = max(slices.IndexFunc(h.cells, func(n int64) bool { return n > 0 }), 0)
	for h.to > h.from && h.cells[h.to-1] == 0 {
		h.to--
	}
	return known
}

// before is CountsBefore, and adds all response times to cells, if that is not nil, and to later those that do not belong there.
func (v *View) before(index int64, cells, later []int64) (sum Counts, known bool) {
	open := v.shape.opened()
	leaves, removed := v.all()
	if index > open.Index || removed != nil && index <= removed.last {
		return sum, false
	}
	if removed != nil {
		sum.add(&removed.total)
		if cells != nil {
			removed.rt.addTo(cells)
		}
	}
	known = true
	for _, s := range leaves {
		known = s.addBefore(index, open.Start, &sum, cells, later) && known
	}
	sum.RTMin, sum.RTMax = 0, 0
	return sum, known
}

// addBefore adds everything before the second with this index. The second that starts at the reading open is open by now. It reports
// whether all of it is known.
func (s *Statistic) addBefore(index int64, open leap.Reading, sum *Counts, cells, later []int64) bool {
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
	if cells != nil {
		r.rt.addTo(cells)
	}
	s.eachRecord(index, s.index, func(i int64, b []byte) {
		var rec sealed
		rec.unpack(b, s.first.shape.perSec, nil)
		before.sub(&rec.Counts)
		if cells != nil {
			_, packed := r.histograms.before(i + 1)
			s.first.shape.layout.addCells(later, &rec, packed)
		}
	})
	sum.add(&before)
	return s.known(index) && (cells == nil || index >= s.oldestHistogram())
}

// sub subtracts counts that are a part of c. Totals that have stopped at the largest int64 do not fall below 0. Response times keep
// their range.
func (c *Counts) sub(o *Counts) {
	c.Pass, c.Block = max(c.Pass-o.Pass, 0), max(c.Block-o.Block, 0)
	c.Complete, c.Exception = max(c.Complete-o.Complete, 0), max(c.Exception-o.Exception, 0)
	c.OccupiedPass, c.RTSum = max(c.OccupiedPass-o.OccupiedPass, 0), max(c.RTSum-o.RTSum, 0)
}

// eachHistogram calls f for the records of the seconds from from to before to that have a histogram.
func (s *Statistic) eachHistogram(from, to int64, f func(index int64, rec sealed, cells []byte)) {
	s.eachRecord(from, to, func(i int64, b []byte) {
		var rec sealed
		rec.unpack(b, s.first.shape.perSec, nil)
		_, cells := s.rings.histograms.before(i + 1) // of the second itself, if calls ended in it
		f(i, rec, cells)
	})
}

// oldestHistogram is the first second from which on the histograms of all records are there.
func (s *Statistic) oldestHistogram() int64 {
	if s.rings == nil {
		return math.MinInt64
	}
	return s.rings.histograms.dropped + 1
}
