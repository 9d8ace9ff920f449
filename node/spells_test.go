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

// addOpen adds call-seconds to the open second.
func (s *spells) addOpen(d time.Duration) { s.add(s.second, d) }

// addCall adds a call. The parameter at is the stamp of its entry, and start is the reading at which the open bucket
// starts.
func (s *spells) addCall(at, start time.Duration) *stay {
	x := &stay{until: at}
	s.stays[x] = true
	s.late[s.second] += max(start-at, 0)
	return x
}

// removeCall removes the call x. The parameter at is the stamp of its exit.
func (s *spells) removeCall(x *stay, at time.Duration) {
	s.addOpen(at - x.until)
	delete(s.stays, x)
}

// turnTo turns from one bucket to a later one. The parameters end and from are the end of the earlier bucket, as a
// reading and as a line time. The parameters begin and to are the start of the later bucket, as a reading and as a line
// time.
//
// turnTo corrects the second that contains the later bucket, for two reasons. If slewing has moved the start of the
// later bucket, the difference is added for each call in flight: the time between the two readings, minus the time
// between the two line times. If the two buckets are in different seconds, and the earlier second has negative
// call-seconds, the earlier second gets 0, and the later second gets the negative rest.
func (s *spells) turnTo(end, from, begin, to time.Duration) {
	next := int64(to / time.Second)
	for x := range s.stays {
		s.addOpen(end - x.until)
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

// totalAt returns the call-seconds of all seconds up to the reading now.
func (s *spells) totalAt(now time.Duration) time.Duration {
	sum := s.total
	for x := range s.stays {
		sum += now - x.until
	}
	return sum
}
