package node

import (
	"math"
	"time"

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

// HistogramBefore sets h to the histogram of all response times before the second with this index, which must be
// sealed, or open. It reports false if that is not known any more, because histograms from so long ago are not kept.
// The shortest and the longest response time are not in h.
func (v *View) HistogramBefore(index int64, h *Histogram) bool {
	open := v.shape.opened()
	leaves, removed := v.all()
	h.reset(v.shape.layout)
	if index > open.Index {
		return false
	}
	var later Histogram
	later.reset(v.shape.layout)
	if removed != nil {
		if index <= removed.last {
			return false
		}
		removed.rt.addTo(h.cells)
		h.sum = removed.total.RTSum
	}
	known := true
	for _, s := range leaves {
		known = s.addBefore(index, open.Start, h, &later) && known
	}
	h.from = len(h.cells)
	h.to = 0
	for c, n := range later.cells {
		if h.cells[c] = max(h.cells[c]-n, 0); h.cells[c] > 0 {
			h.count = saturate(h.count, h.cells[c])
			h.from, h.to = min(h.from, c), c+1
		}
	}
	h.from = min(h.from, h.to)
	h.sum = max(h.sum-later.sum, 0)
	return known
}

// addBefore adds all response times before the open second to h, and those of the second with this index and after it
// to later.
func (s *Statistic) addBefore(index int64, open leap.Reading, h, later *Histogram) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	r := s.rings
	if r == nil {
		return true
	}
	add := func(h *Histogram, rt time.Duration) {
		h.sum = time.Duration(saturate(int64(h.sum), int64(rt)))
	}
	r.rt.addTo(h.cells)
	add(h, r.total.RTSum)
	// The total has the buckets of the open second that are over.
	start := secondAt(s.index)
	for _, b := range r.window.Window(s.at, s.at-start+s.first.shape.second.Length()) {
		add(later, b.RTSum)
	}
	s.eachHistogram(index, s.index, func(_ int64, rec sealed, cells []byte) {
		add(later, rec.RTSum)
		s.first.shape.layout.addCells(later.cells, &rec, cells)
	})
	return index >= s.oldestHistogram()
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
