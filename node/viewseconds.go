package node

import (
	"slices"

	"github.com/windowstat/windowstat/leap"
)

// Second returns the record of the second with this index on the line: the sum of the leaves' records, which need not have
// been sealed before. It reports false for a second from before the view began, one that the timeline has not passed, one
// that is older than the history or from before a leaf was removed, and one that must not be handed out (see
// [leap.Timeline.Name]).
func (v *View) Second(index int64) (MetricNode, bool) {
	// The order matters: a leaf that is added after the list was taken begins in the second that is open now, or later.
	open := v.shape.opened()
	leaves, last := v.known()
	name, ok := v.shape.line.Name(index)
	if !ok || index < v.since || index >= open.Index || index <= last {
		return MetricNode{}, false
	}
	m := MetricNode{Start: name}
	var room [64]int64
	slides := counters(room[:], int(v.shape.perSec))
	var t atOnce
	for _, s := range leaves {
		if !s.addSecond(index, open.Start, &m, &t, slides) {
			return MetricNode{}, false
		}
	}
	m.InFlightMax = t.surely(&m)
	m.PassPeak = slices.Max(slides)
	return m, true
}

// addSecond adds the record of a second to m and its slides to slides. The second that starts at the reading open is
// open by now. It reports false if the record is not known any more.
func (s *Statistic) addSecond(index int64, open leap.Reading, m *MetricNode, t *atOnce, slides []int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	if !s.known(index) {
		return false // also before the leaf began, so that what can be read has no gap
	}
	if index < s.since {
		return true
	}
	b := s.record(index)
	if b == nil {
		m.addIdle(s.inFlightAfter(index), t)
		return true
	}
	var rec sealed
	rec.unpack(b, s.first.shape.perSec, slides)
	m.add(&rec, t)
	return true
}

// known is the leaves, and the last second that is not known because a leaf is removed.
func (v *View) known() ([]*Statistic, int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := v.since - 1
	if v.removed != nil {
		last = v.removed.last
	}
	return v.list(), last
}

// AppendSeconds appends the records of the seconds with indexes from from to before to, ascending, idle ones included, and
// returns the extended slice. Seconds for which [View.Second] reports false are left out. It costs less than to ask for
// each.
func (v *View) AppendSeconds(dst []MetricNode, from, to int64) []MetricNode {
	open := v.shape.opened()
	leaves, last := v.known()
	return v.appendSeconds(dst, leaves, max(from, v.since, last+1), min(to, open.Index), open.Start)
}

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
	if s.retired {
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
