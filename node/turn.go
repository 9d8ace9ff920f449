package node

import "time"

// turn moves the statistic to the reading now, if it is not there yet: the open bucket goes into the window, the
// seconds that have ended are sealed, and the bucket of now is opened.
func (s *Statistic) turn(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
}

// advance is turn for callers that hold mu.
func (s *Statistic) advance(now time.Duration) {
	if now < s.end {
		return
	}
	all := s.lockStripes()
	defer unlockStripes(all)
	s.fold(all)
	if next := s.line.At(now); next.Index > s.now.Index {
		s.seal(all, next.Index)
		s.now = next
	}
	s.open(now)
	for _, st := range all[1:] {
		st.end = s.end
	}
}

// fold moves the counts of the open bucket from the stripes into the window. An idle bucket is not even opened, so
// that an idle statistic costs nothing.
func (s *Statistic) fold(all []*stripe) {
	var sum Counts
	for _, st := range all {
		if !st.open.Idle() {
			sum.add(&st.open)
			st.open = Counts{}
		}
	}
	if sum.Idle() {
		return
	}
	s.window.Open(s.at).add(&sum)
	s.total.add(&sum)
}

// open opens the bucket of the reading now in the present second.
func (s *Statistic) open(now time.Duration) {
	length := s.window.Length()
	s.at = s.window.Start(s.now.Line(now))
	s.end = s.now.Reading(s.at + length)
	s.first.end = s.end
}

// seal makes the records of the seconds from the one that is open to the one before next. Only seconds in which
// something happened get a record; the others are known to be idle.
func (s *Statistic) seal(all []*stripe, next int64) {
	rec := sealed{began: s.began}
	for _, st := range all {
		rec.most += st.most
		rec.inFlight += st.inFlight
		st.most = st.inFlight
	}
	s.began = rec.inFlight
	start := secondAt(s.now.Index)
	for _, b := range s.window.Window(start+time.Second-1, time.Second) {
		rec.Counts.add(b)
	}
	rec.peak = s.peak(start)
	if rec != (sealed{}) {
		*s.minute.Open(start) = rec
	}
	// The second after it may have been idle and yet windows that end in it hold passes from before its start.
	if after := s.now.Index + 1; after < next {
		if peak := s.peak(secondAt(after)); peak > 0 {
			*s.minute.Open(secondAt(after)) = sealed{began: s.began, inFlight: s.began, most: s.began, peak: peak}
		}
	}
}

// peak is the highest number of passes in any window of one second that ends at the end of one of the buckets of
// the second that starts at start.
func (s *Statistic) peak(start time.Duration) int64 {
	length := s.window.Length()
	var highest int64
	for i := range s.shape.perSec {
		var sum int64
		for _, b := range s.window.Window(start+time.Duration(i)*length, time.Second) {
			sum = saturate(sum, b.Pass)
		}
		highest = max(highest, sum)
	}
	return highest
}

func secondAt(index int64) time.Duration { return time.Duration(index) * time.Second }
