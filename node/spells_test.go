package node_test

import "time"

// spells is the oracle of the call-seconds of one statistic. When the statistic turns, spells adds the call-seconds of
// each call in flight separately.
type spells struct {
	stays  map[*stay]bool
	within map[int64]time.Duration // call-seconds of each second
	late   map[int64]time.Duration // the part of within that comes from late entries and slewing
	second int64                   // the open second
	total  time.Duration
}

// stay is a call in flight. The field until is the reading up to which spells has already counted the time of this
// call.
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

// came adds a call. The parameter at is the stamp of its entry, and start is the reading at which the open bucket
// starts.
func (s *spells) came(at, start time.Duration) *stay {
	x := &stay{until: at}
	s.stays[x] = true
	s.late[s.second] += max(start-at, 0)
	return x
}

// went removes the call x. The parameter at is the stamp of its exit.
func (s *spells) went(x *stay, at time.Duration) {
	s.more(at - x.until)
	delete(s.stays, x)
}

// pass turns from one bucket to a later one. The parameters end and from are the end of the earlier bucket, as a
// reading and as a line time. The parameters begin and to are the start of the later bucket, as a reading and as a line
// time.
//
// The second of the later bucket also gets two corrections. The first correction is added for each call in flight: the
// time between the two readings, minus the time between the two line times. The second correction applies if the second
// of the earlier bucket would have negative call-seconds. This second then has 0, and the second of the later bucket
// gets the negative rest.
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

// until returns the call-seconds of all seconds up to the reading now.
func (s *spells) until(now time.Duration) time.Duration {
	sum := s.total
	for x := range s.stays {
		sum += now - x.until
	}
	return sum
}
