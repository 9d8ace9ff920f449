package node

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Histogram sets h to the histogram of the response times in the sealed seconds with indexes from from to before to.
// It reports false if one of them is not sealed, or its histogram is not kept any more; h then has the others.
func (v *View) Histogram(from, to int64, h *Histogram) (whole bool) {
	h.reset(v.shape.layout)
	open := v.shape.openSecond()
	from = max(from, v.since) // before it began there was nothing
	_, whole = v.addHistograms(from, min(to, open.Index), open, func(int64) *Histogram { return h })
	return to <= open.Index && (from >= to || whole)
}

// addCells adds the response times of a second, whose record is rec, to counts by cell, if its histogram is kept.
func (s *Statistic) addCells(index int64, rec *record, counts []int64) {
	if second, b := s.history.histograms.before(index + 1); second == index {
		s.first.shape.layout.addCells(counts, rec, b)
	}
}

// Histograms sets each of hs to the histogram of the response times in one sealed second: the first to that of the
// second from, and so on. It returns the first second from which on all are known; those before it are empty. It costs
// less than to ask for each.
func (v *View) Histograms(from int64, hs []Histogram) (known int64) {
	for i := range hs {
		hs[i].reset(v.shape.layout)
	}
	known, _ = v.addHistograms(from, from+int64(len(hs)), v.shape.openSecond(), func(i int64) *Histogram { return &hs[i-from] })
	for i := from; i < min(known, from+int64(len(hs))); i++ {
		hs[i-from].reset(v.shape.layout)
	}
	return max(known, from)
}

// addHistograms adds the response times in each of the seconds from from to before to, open being the one that is, to a histogram. It
// returns the first second from which on all are known, which may be older than those that are kept for certain, and whether from is not.
func (v *View) addHistograms(from, to int64, open leap.Second, of func(second int64) *Histogram) (known int64, kept bool) {
	leaves, removed := v.leavesAndRemoved()
	known = max(v.since, removed.last+1)
	kept = from >= known
	for _, s := range leaves {
		first, whole := s.addHistograms(from, to, open.Start, of)
		known, kept = max(known, first), kept && whole
	}
	return known, kept
}

// addHistograms adds those of the leaf that are kept.
func (s *Statistic) addHistograms(from, to int64, open leap.Reading, of func(second int64) *Histogram) (known int64, kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	known = s.history.histograms.dropped + 1
	s.eachSecond(max(from, known), to, nil, func(i int64, rec record) {
		h := of(i)
		s.addCells(i, &rec, h.cells)
		h.addTotals(&rec.Counts)
	})
	return known, max(from, s.since) >= s.second-int64(s.first.shape.opts.Histograms/time.Second)
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
	for h.to = len(h.cells); h.to > h.from && h.cells[h.to-1] == 0; {
		h.to--
	}
	return known
}

// before is CountsBefore, and adds all response times to cells, if that is not nil, and to later those that do not belong there.
func (v *View) before(index int64, cells, later []int64) (sum Counts, known bool) {
	open := v.shape.openSecond()
	leaves, removed := v.leavesAndRemoved()
	if index > open.Index || index <= removed.last {
		return sum, false
	}
	sum.add(&removed.total)
	if cells != nil {
		removed.rt.addTo(cells, 0)
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
	r := s.history
	before := r.total // which has the buckets of the open second that are over
	for _, b := range r.window.Window(s.start, s.start-secondStart(s.second)+s.first.shape.second.Length()) {
		before.sub(b)
	}
	if cells != nil {
		r.rt.addTo(cells, 0)
	}
	s.eachSecond(index, s.second, nil, func(i int64, rec record) {
		before.sub(&rec.Counts)
		if cells != nil {
			s.addCells(i, &rec, later)
		}
	})
	sum.add(&before)
	return index > r.seconds.dropped && (cells == nil || index > r.histograms.dropped)
}

// sub subtracts counts that are a part of c. Totals that have stopped at the largest int64 do not fall below 0. Response times keep
// their range.
func (c *Counts) sub(o *Counts) {
	c.Pass, c.Block = max(c.Pass-o.Pass, 0), max(c.Block-o.Block, 0)
	c.Complete, c.Exception = max(c.Complete-o.Complete, 0), max(c.Exception-o.Exception, 0)
	c.OccupiedPass, c.RTSum = max(c.OccupiedPass-o.OccupiedPass, 0), max(c.RTSum-o.RTSum, 0)
}
