package node

import "time"

// Seal moves the statistic to the reading now, so that every second before now's can be read with Second. It costs a
// lock and a comparison where there is nothing to do.
func (s *Statistic) Seal(now time.Duration) { s.turn(now) }

// Since is the index of the second in which the statistic began.
func (s *Statistic) Since() int64 { return s.since }

// Began is the wall-clock second in which the statistic began, in UTC.
func (s *Statistic) Began() time.Time { return time.Unix(s.name, 0).UTC() }

// Second returns the record of the sealed second with this index on the line. It reports false for a second from
// before the statistic began, one that is not sealed yet (see [Statistic.Seal]), one whose record was replaced by a
// newer one, and one that must not be handed out (see [leap.Timeline.Name]).
func (s *Statistic) Second(index int64) (MetricNode, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.second(index)
}

// AppendSeconds appends the records of the sealed seconds with indexes from from to before to, ascending, idle ones
// included, and returns the extended slice. Seconds for which [Statistic.Second] reports false are left out, and those
// from before the minute window.
func (s *Statistic) AppendSeconds(dst []MetricNode, from, to int64) []MetricNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := max(from, s.oldest()); i < min(to, s.index); i++ {
		if m, ok := s.second(i); ok {
			dst = append(dst, m)
		}
	}
	return dst
}

// Sum returns the counts of the sealed seconds with indexes from from to before to together, such as those of the last
// ten complete seconds. It reports false if one of them is not sealed, or is from before the minute window; the sum is
// of the others then.
func (s *Statistic) Sum(from, to int64) (Counts, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum Counts
	whole := s.records(from, to, func(rec *sealed, _ []byte) { sum.add(&rec.Counts) })
	return sum, whole
}

// Histogram sets h to the histogram of the response times in the sealed seconds with indexes from from to before to.
// It reports false if one of them is not sealed, or is from before the minute window; h then has the others.
func (s *Statistic) Histogram(from, to int64, h *Histogram) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.reset(s.first.shape.layout)
	var sum Counts
	whole := s.records(from, to, func(rec *sealed, cells []byte) {
		addCells(h.cells, cells)
		sum.add(&rec.Counts)
	})
	h.measure(&sum)
	return whole
}

// records calls f for the records of the sealed seconds with indexes from from to before to, with their histograms.
// It reports whether all of these seconds are known.
func (s *Statistic) records(from, to int64, f func(*sealed, []byte)) bool {
	from = max(from, s.since) // before that there was nothing
	oldest := s.oldest()
	whole := to <= s.index && (from >= to || from >= oldest)
	if s.rings == nil {
		return whole
	}
	for i := max(from, oldest); i < min(to, s.index); i++ {
		if p := s.rings.minute.At(secondAt(i)); p != nil && s.known(i) {
			var rec sealed
			f(&rec, rec.unpack(s.rings.store.get(*p), s.first.shape.perSec, nil))
		}
	}
	return whole
}

// oldest is the first second of the minute window before the open second, or in which the statistic began.
func (s *Statistic) oldest() int64 {
	return max(s.since, s.index-int64(s.first.shape.horizon/time.Second))
}

// known reports whether the record of a second, if there was one, was not replaced.
func (s *Statistic) known(index int64) bool {
	return s.rings == nil || !s.rings.minute.Replaced(secondAt(index))
}

func (s *Statistic) second(index int64) (MetricNode, bool) {
	if index < s.since || index >= s.index || !s.known(index) {
		return MetricNode{}, false
	}
	name, ok := s.first.shape.line.Name(index)
	if !ok {
		return MetricNode{}, false
	}
	m := MetricNode{Start: name}
	at := secondAt(index)
	if p := s.record(at); p != nil {
		var rec sealed
		b := s.rings.store.get(*p)
		rec.unpack(b, s.first.shape.perSec, nil)
		m.Counts, m.InFlight, m.InFlightMax = rec.Counts, rec.inFlight, rec.most
		m.PassPeak = peakOf(b, s.first.shape.perSec)
		return m, true
	}
	// Nothing happened: what was in flight is what the next recorded second began with.
	m.InFlight = s.inFlightAfter(at)
	m.InFlightMax = m.InFlight
	return m, true
}

// record finds the record of the second that starts at a line time, nil if nothing happened in it.
func (s *Statistic) record(at time.Duration) *packed {
	if s.rings == nil {
		return nil
	}
	return s.rings.minute.At(at)
}

// inFlightAfter is what the first recorded second after at began with.
func (s *Statistic) inFlightAfter(at time.Duration) int64 {
	if s.rings == nil {
		return s.began
	}
	p := s.rings.minute.After(at)
	if p == nil {
		return s.began
	}
	var rec sealed
	rec.unpack(s.rings.store.get(*p), s.first.shape.perSec, nil)
	return rec.began
}
