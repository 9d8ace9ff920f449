package node_test

import "time"

// spells is what the calls of one statistic spend, in readings, by second: it integrates each call for itself whenever
// the statistic goes from one bucket to another.
type spells struct {
	stays  map[*stay]bool
	within map[int64]time.Duration // by second
	late   map[int64]time.Duration // what of that was spent before the second's buckets
	second int64                   // that is open
	total  time.Duration
}

// stay is a call in flight, with the reading up to which it was integrated.
type stay struct{ until time.Duration }

func newSpells(second int64) spells {
	return spells{stays: map[*stay]bool{}, within: map[int64]time.Duration{}, late: map[int64]time.Duration{}, second: second}
}

// rest is how much a call counts less until it leaves.
func rest(stamp time.Duration) time.Duration { return -stamp & 4095 }

func (s *spells) add(second int64, d time.Duration) {
	s.within[second] += d
	s.total += d
}

// more adds to what calls spend in the open second.
func (s *spells) more(d time.Duration) { s.add(s.second, d) }

// came is a call that is in flight from a reading on, in a bucket that starts at the reading start.
func (s *spells) came(at, start time.Duration) *stay {
	x := &stay{until: at}
	s.stays[x] = true
	s.late[s.second] += max(start-at, 0)
	return x
}

// went is a call that left at a reading.
func (s *spells) went(x *stay, at time.Duration) {
	s.more(at - x.until)
	delete(s.stays, x)
}

// pass goes on from the end of a bucket, by the clock and on the line, to the begin of a later one. What it takes by
// the clock beyond the line goes to that one's second; and so does what would be less than nothing in the second that
// is over.
func (s *spells) pass(end, from, begin, to time.Duration) {
	next := int64(to / time.Second)
	for x := range s.stays {
		s.more(end - x.until)
		for at := from; at < to; {
			until := min((at/time.Second+1)*time.Second, to)
			s.add(int64(at/time.Second), until-at)
			at = until
		}
		s.add(next, begin-end-(to-from))
		s.late[next] += max(begin-end-(to-from), 0)
		x.until = begin
	}
	if debt := min(s.within[s.second], 0); next > s.second {
		s.within[s.second] -= debt
		s.within[next] += debt
		s.second = next
	}
}

// until is what calls have spent by the reading now.
func (s *spells) until(now time.Duration) time.Duration {
	sum := s.total
	for x := range s.stays {
		sum += now - x.until
	}
	return sum
}
