package node_test

import "time"

// spells is the oracle of the call-seconds of one statistic. When the statistic turns, spells adds the call-seconds of
// each call in flight separately.
type spells struct {
	stays  map[*stay]bool
	within map[int64]time.Duration // call-seconds of each second
	late   map[int64]time.Duration // the part of within that late entries and slewing added
	second int64                   // the open second
	total  time.Duration
}

// stay is a call in flight. spells has already counted the time of this call up to the reading until.
type stay struct{ until time.Duration }

func newSpells(second int64) spells {
	return spells{
		stays: map[*stay]bool{}, within: map[int64]time.Duration{}, late: map[int64]time.Duration{}, second: second,
	}
}

// rest returns the time by which the call word rounds up the stamp of an entry. The call-seconds lack this time until
// the call exits.
func rest(stamp time.Duration) time.Duration { return -stamp & 4095 }

func (s *spells) add(second int64, d time.Duration) {
	s.within[second] += d
	s.total += d
}

// more adds call-seconds to the open second.
func (s *spells) more(d time.Duration) { s.add(s.second, d) }

// came adds a call whose entry has the stamp at. The open bucket starts at the reading start.
func (s *spells) came(at, start time.Duration) *stay {
	x := &stay{until: at}
	s.stays[x] = true
	s.late[s.second] += max(start-at, 0)
	return x
}

// went removes x, a call whose exit has the stamp at.
func (s *spells) went(x *stay, at time.Duration) {
	s.more(at - x.until)
	delete(s.stays, x)
}

// pass turns from one bucket to a later one. The earlier bucket ends at the reading end, in line time from. The later
// bucket begins at the reading begin, in line time to.
//
// The second of the later bucket also gets two corrections. The first correction is the difference between the time on
// the clock and the line time that passed between the buckets. The second correction applies if the earlier second ends
// with negative call-seconds: the negative rest is carried over.
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

// until returns all call-seconds up to the reading now.
func (s *spells) until(now time.Duration) time.Duration {
	sum := s.total
	for x := range s.stays {
		sum += now - x.until
	}
	return sum
}
