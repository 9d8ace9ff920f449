package node

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Histogram sets h to the histogram of the response times in the sealed seconds with indexes in [from, to), and returns
// true. Histogram returns false if one of these seconds is not sealed, or if its histogram is no longer kept (see
// [Options].Histograms). In this case h contains only the histograms that the leaves of the view still keep.
func (v *View) Histogram(from, to int64, h *Histogram) (whole bool) {
	h.reset(v.config.layout)
	open := v.config.openSecond()
	from = max(from, v.since) // the view has no calls before it began
	_, whole = v.addHistograms(from, min(to, open.Index), open, func(int64) *Histogram { return h })
	return to <= open.Index && (from >= to || whole)
}

// Histograms sets each element of hs to the histogram of one sealed second. hs[0] is for the second with the index
// from, hs[1] for the next second, and so on. Leaves drop old histograms, so the first elements may be incomplete.
// Histograms therefore returns known, an index that is at least from: every leaf still has all its histograms of the
// second with this index and of later seconds. The elements of hs for earlier seconds are empty. One call of Histograms
// costs less than a call of [View.Histogram] for each second.
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
// addHistograms returns two results. The first result, known, is an index: every leaf still has all its histograms of
// the second with this index and of later seconds. The second result, kept, reports whether the second with the index
// from is in the view and not older than [Options].Histograms. Leaves may keep histograms for longer than
// Options.Histograms.
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
// open second.
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

// CountsBefore returns the counts of the view from its beginning to the start of the second with this index. The second
// must be sealed or open. RTMin and RTMax of the result are 0. CountsBefore returns false if the record of this second
// or of a later second is no longer kept. It locks each leaf once, and scans the records from this second to the newest
// record.
func (v *View) CountsBefore(index int64) (sum Counts, known bool) {
	return v.countsBefore(index, nil, nil)
}

// HistogramBefore sets h to the histogram of the response times that [View.CountsBefore] counts for the same index. It
// returns false if the histogram of the second with this index or of a later second is no longer kept. Histograms are
// kept for a shorter time than records. The minimum and maximum of h are 0, so h is for counts by bound, not for
// [Histogram.Quantile].
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
// times by cell, in two slices. The slice cells gets all response times before the open second. The slice recent gets
// the response times of the sealed seconds since index. The caller subtracts recent from cells.
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
// counts backwards: the totals of s, minus the open second, minus the records of the sealed seconds since index. If
// cells is not nil, addBefore also adds the response times of s to cells and recent; see [View.countsBefore]. The
// parameter open is the start of the open second. addBefore reports whether all records that it must subtract are still
// kept. If cells is not nil, their histograms must still be kept, too.
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
