package node_test

import "time"

// spells is the oracle of the call-seconds of one statistic. It integrates each call separately whenever the statistic
// turns.
type spells struct {
	stays  map[*stay]bool
	within map[int64]time.Duration // by second
	late   map[int64]time.Duration // the part of within before the buckets of the second
	second int64                   // that is open
	total  time.Duration
}

// stay is a call in flight, with the reading of its last integration.
type stay struct{ until time.Duration }

func newSpells(second int64) spells {
	return spells{
		stays: map[*stay]bool{}, within: map[int64]time.Duration{}, late: map[int64]time.Duration{}, second: second,
	}
}

// rest returns the rounding of a call's stamp, which is missing until the call leaves.
func rest(stamp time.Duration) time.Duration { return -stamp & 4095 }

func (s *spells) add(second int64, d time.Duration) {
	s.within[second] += d
	s.total += d
}

// more adds call-seconds to the open second.
func (s *spells) more(d time.Duration) { s.add(s.second, d) }

// came adds a call that is in flight from the reading at on, in a bucket that starts at the reading start.
func (s *spells) came(at, start time.Duration) *stay {
	x := &stay{until: at}
	s.stays[x] = true
	s.late[s.second] += max(start-at, 0)
	return x
}

// went removes a call that left at a reading.
func (s *spells) went(x *stay, at time.Duration) {
	s.more(at - x.until)
	delete(s.stays, x)
}

// pass moves from the end of a bucket (reading and line time) to the start of a later one. The second of the later
// bucket gets the difference between clock and line, and the negative remainder of the second that ends.
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

// until returns the call-seconds up to the reading now.
func (s *spells) until(now time.Duration) time.Duration {
	sum := s.total
	for x := range s.stays {
		sum += now - x.until
	}
	return sum
}
