package node

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Histogram sets h to the histogram of the response times in the sealed seconds with indexes in [from, to). It returns
// true if h is complete. It returns false if one of these seconds is not sealed, or if its histogram is no longer kept
// (see [Options].Histograms). In this case h contains only the histograms that the leaves of the view still keep.
func (v *View) Histogram(from, to int64, h *Histogram) (whole bool) {
	h.reset(v.config.layout)
	open := v.config.openSecond()
	from = max(from, v.since) // the view has no calls before it began
	_, whole = v.addHistograms(from, min(to, open.Index), open, func(int64) *Histogram { return h })
	return to <= open.Index && (from >= to || whole)
}

// Histograms sets each element of hs to the histogram of one second: hs[0] to the histogram of the second with the
// index from, hs[1] to the histogram of the next second, and so on. It also returns an index, known, which is at least
// from: every leaf still has its histograms of the second with this index and of all later sealed seconds. The elements
// of hs for seconds before this index are empty, because leaves drop old histograms. The elements for seconds that are
// not sealed are empty, too. One call of Histograms costs less than a call of [View.Histogram] for each second.
func (v *View) Histograms(from int64, hs []Histogram) (known int64) {
	for i := range hs {
		hs[i].reset(v.config.layout)
	}
	target := func(i int64) *Histogram { return &hs[i-from] }
	known, _ = v.addHistograms(from, from+int64(len(hs)), v.config.openSecond(), target)
	for i := from; i < min(known, from+int64(len(hs))); i++ {
		hs[i-from].reset(v.config.layout)
	}
	return max(known, from)
}

// addHistograms adds the response times of each second i in [from, to) to the histogram that target(i) returns. The
// parameter open is the open second.
//
// addHistograms returns known and kept. The index known belongs to a second: every leaf still has all its histograms of
// this second and of later seconds. kept is true if the second with the index from meets three conditions: it is not
// before the start of the view, it is not older than [Options].Histograms, and it is later than all seconds in which
// removed leaves may have counted. Leaves may keep histograms for longer than Options.Histograms, so kept may be false
// although every leaf still has its histogram of this second.
func (v *View) addHistograms(
	from, to int64, open leap.Second, target func(second int64) *Histogram,
) (known int64, kept bool) {
	leaves, removed := v.leavesAndRemoved()
	known = max(v.since, removed.last+1)
	kept = from >= known
	for _, s := range leaves {
		first, whole := s.addHistograms(from, to, open.Start, target)
		known, kept = max(known, first), kept && whole
	}
	return known, kept
}

// addHistograms does the same as [View.addHistograms], for the single leaf s. The parameter open is the start of the
// open second. The result kept considers only the seconds since s began, because s has no response times before.
func (s *Statistic) addHistograms(
	from, to int64, open leap.Reading, target func(second int64) *Histogram,
) (known int64, kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	known = s.history.histograms.dropped + 1
	s.eachSecond(max(from, known), to, nil, func(i int64, rec record) {
		h := target(i)
		s.addCells(i, &rec, h.cells)
		h.addTotals(&rec.Counts)
	})
	return known, max(from, s.since) >= s.second-int64(s.first.config.opts.Histograms/time.Second)
}

// addCells adds the response times of the second with this index to counts, which has an element for each cell. The
// parameter rec is the record of the second. If the histogram of the second was dropped, addCells adds nothing. mu must
// be held.
func (s *Statistic) addCells(index int64, rec *record, counts []int64) {
	if second, b := s.history.histograms.before(index + 1); second == index {
		s.first.config.layout.addCells(counts, rec, b)
	}
}

// CountsBefore returns the counts of the view from its beginning to the start of the second with this index. This
// second must be sealed or open. RTMin and RTMax of the result are 0. CountsBefore returns false if the record of this
// second or of a later second is no longer kept. It locks each leaf once, and scans the records from this second to the
// newest record.
func (v *View) CountsBefore(index int64) (sum Counts, known bool) {
	return v.countsBefore(index, nil, nil)
}

// HistogramBefore sets h to the histogram of the response times that [View.CountsBefore] counts for the same index. It
// returns false if the histogram of the second with this index or of a later second is no longer kept. Histograms are
// kept for a shorter time than records. HistogramBefore cannot compute the shortest and the longest response time, so
// [Histogram.Quantile] is undefined for h. Use h for its counts by bound.
func (v *View) HistogramBefore(index int64, h *Histogram) bool {
	h.reset(v.config.layout)
	recent := make([]int64, len(h.cells))
	sum, known := v.countsBefore(index, h.cells, recent)
	for c, n := range recent {
		h.cells[c] = max(h.cells[c]-n, 0)
	}
	h.count, h.sum = sum.Complete, sum.RTSum
	h.from = max(slices.IndexFunc(h.cells, func(n int64) bool { return n > 0 }), 0)
	for h.to = len(h.cells); h.to > h.from && h.cells[h.to-1] == 0; {
		h.to--
	}
	return known
}

// countsBefore implements CountsBefore and HistogramBefore. If cells is not nil, countsBefore also counts response
// times by cell. It adds the response times of all seconds before the open second to the slice cells. It adds the
// response times of the sealed seconds from index on to the slice recent. The caller then subtracts recent from cells.
func (v *View) countsBefore(index int64, cells, recent []int64) (sum Counts, known bool) {
	open := v.config.openSecond()
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
		known = s.addBefore(index, open.Start, &sum, cells, recent) && known
	}
	sum.RTMin, sum.RTMax = 0, 0
	return sum, known
}

// addBefore adds the counts of the leaf s, up to the start of the second with this index, to sum. It computes these
// counts backwards: it begins with the totals of s, subtracts the open second, and then subtracts the records of the
// sealed seconds from index on. If cells is not nil, addBefore also adds the response times of s to cells and recent;
// see [View.countsBefore]. The parameter open is the start of the open second. addBefore returns true if s still keeps
// all records to subtract, and, if cells is not nil, also their histograms.
func (s *Statistic) addBefore(index int64, open leap.Reading, sum *Counts, cells, recent []int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	r := s.history
	rest := r.total // includes the buckets of the open second that have already ended
	for _, b := range r.window.Window(s.start, s.start-secondStart(s.second)+s.first.config.second.Length()) {
		rest.sub(b)
	}
	if cells != nil {
		r.rt.addTo(cells, 0)
	}
	s.eachSecond(index, s.second, nil, func(i int64, rec record) {
		rest.sub(&rec.Counts)
		if cells != nil {
			s.addCells(i, &rec, recent)
		}
	})
	sum.add(&rest)
	return index > r.seconds.dropped && (cells == nil || index > r.histograms.dropped)
}
