package node

import "time"

// Seal moves the statistic to the reading now, so that every second before now's can be read with Second.
func (s *Statistic) Seal(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
}

// Since is the index of the second in which the statistic began.
func (s *Statistic) Since() int64 { return s.since }

// Second returns the record of the sealed second with this index on the line. It reports false for a second from
// before the statistic began, one that is not sealed yet (see [Statistic.Seal]), one whose record was replaced by a
// newer one, and one whose wall-clock name was given before (see [leap.Timeline.Name]).
func (s *Statistic) Second(index int64) (MetricNode, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.second(index)
}

func (s *Statistic) second(index int64) (MetricNode, bool) {
	at := secondAt(index)
	if index < s.since || index >= s.now.Index || s.minute.Replaced(at) {
		return MetricNode{}, false
	}
	name, ok := s.line.Name(index)
	if !ok {
		return MetricNode{}, false
	}
	if rec := s.minute.At(at); rec != nil {
		return MetricNode{
			Start: name, Counts: rec.Counts,
			InFlight: rec.inFlight, InFlightMax: rec.most, PassPeak: rec.peak,
		}, true
	}
	// Nothing happened: what was in flight is what the next recorded second began with.
	began := s.began
	if next := s.minute.After(at); next != nil {
		began = next.began
	}
	return MetricNode{Start: name, InFlight: began, InFlightMax: began}, true
}

// Window returns the counts of the second window that ends with the bucket of the reading now: that bucket, which
// is still open, and the ones before it, together Options.Interval long.
func (s *Statistic) Window(now time.Duration) Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	sum := s.openCounts()
	for _, b := range s.window.Window(s.at, s.shape.span) {
		sum.add(b)
	}
	return sum
}

// Minute returns the counts of the minute window that ends with the second of the reading now: that second, which is
// still open, and the ones before it, together Options.Minute long.
func (s *Statistic) Minute(now time.Duration) Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	sum := s.openCounts()
	start := secondAt(s.now.Index)
	for _, b := range s.window.Window(s.at, s.at-start+s.window.Length()) {
		sum.add(b)
	}
	for _, rec := range s.minute.Window(start, s.shape.horizon) {
		sum.add(&rec.Counts)
	}
	return sum
}

// Snapshot is a statistic at one moment.
type Snapshot struct {
	// Total is everything since the statistic began, up to the moment.
	Total Counts
	// InFlight is what was in flight at the moment.
	InFlight int64
	// Last is the last complete second.
	Last MetricNode
	// Peak is the highest sliding second of the minute before the present second: of its PassPeaks.
	Peak int64
}

// Snapshot reads the statistic at the reading now. If h is not nil it is set to the histogram of all response times
// since the statistic began, as of the same moment: its count is Total.Complete.
func (s *Statistic) Snapshot(now time.Duration, h *Histogram) Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	var snap Snapshot
	snap.Last, _ = s.second(s.now.Index - 1)
	for _, rec := range s.minute.Window(secondAt(s.now.Index-1), s.shape.horizon) {
		snap.Peak = max(snap.Peak, rec.peak)
	}
	if h != nil {
		h.reset(s.shape.layout)
	}
	snap.Total = s.total
	all := s.lockStripes()
	defer unlockStripes(all)
	for _, st := range all {
		snap.Total.add(&st.open)
		snap.InFlight += st.inFlight
		if h != nil {
			h.add(&st.rt)
		}
	}
	if h != nil {
		h.count, h.sum = snap.Total.Complete, snap.Total.RTSum
	}
	return snap
}

// openCounts sums the open bucket over the stripes. Holds mu, so that the bucket stays the open one.
func (s *Statistic) openCounts() Counts {
	all := s.lockStripes()
	defer unlockStripes(all)
	var sum Counts
	for _, st := range all {
		sum.add(&st.open)
	}
	return sum
}
