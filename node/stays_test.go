package node_test

import (
	"math"
	"time"
)

// stay is a call in flight, as the oracle of the call-seconds remembers it: in the seconds from that in which it was counted
// to that in which it left, and from one place on the line to another. One whose stamp was older than the bucket it was
// counted in came before that, and one that goes on is rounded up.
type stay struct {
	first, last int64
	from, to    time.Duration
}

// spells is what was spent otherwise, by second, and the seconds in which a statistic was.
type spells struct {
	more    map[int64]time.Duration
	visited map[int64]bool
	told    time.Duration
}

const onward = math.MaxInt64

// rest is how much a call counts less until it leaves.
func rest(stamp time.Duration) time.Duration { return -stamp & 4095 }

// visit notes that the statistic was in the bucket that starts at a place.
func (s *spells) visit(open time.Duration) {
	if s.visited == nil {
		s.visited, s.more = map[int64]bool{}, map[int64]time.Duration{}
	}
	s.visited[int64(open/time.Second)] = true
}

func (s *spells) add(open, d time.Duration) { s.more[int64(open/time.Second)] += d }

// came is a call that was counted in the bucket that starts at open.
func (o *oracle) came(open, from time.Duration) *stay {
	o.visit(open)
	x := &stay{first: int64(open / time.Second), last: onward, from: from, to: onward}
	o.stays = append(o.stays, x)
	return x
}

func (x *stay) went(open, to time.Duration) { x.last, x.to = int64(open/time.Second), to }

// left is the time from a stamp to the end of the open bucket, and place is the stamp's place on the line, for a call that
// leaves.
func (p *position) left(at time.Duration) time.Duration { return min(max(p.end-at, 0), p.reach) }

func (p *position) place(at time.Duration) time.Duration { return p.open + p.length - p.left(at) }

// spent is what calls spent in a second. What would be less than nothing is made up for in the next second in which the
// statistic was.
func (o *oracle) spent(second int64) (sum time.Duration) {
	var owed time.Duration
	for i := min(second, o.owing(second)); i <= second; i++ {
		sum = o.within(i)
		if o.visited[i] {
			sum += owed
			owed = min(sum, 0)
			sum = max(sum, 0)
		}
	}
	return sum
}

// owing is the last second before one that has surely no debt before it: calls spent a millisecond in it.
func (o *oracle) owing(second int64) int64 {
	for i := second - 1; i > 0; i-- {
		if o.visited[i] && o.within(i) >= ms {
			return i
		}
	}
	return 0
}

func (o *oracle) within(second int64) (sum time.Duration) {
	start := time.Duration(second) * time.Second
	for _, x := range o.stays {
		if second < x.first || second > x.last {
			continue
		}
		from := start
		if second == x.first {
			from = x.from
		}
		sum += min(x.to, start+time.Second) - from
	}
	return sum + o.more[second]
}

// total is what a snapshot says at the present reading; what has left by then does so no earlier from then on.
func (s *subject) total(now time.Duration) (sum time.Duration) {
	for _, x := range s.stays {
		if x.last == onward {
			s.reach = s.left(now)
		}
	}
	for _, x := range s.stays {
		to := x.to
		if x.last == onward {
			to = s.place(now)
		}
		sum += to - x.from
	}
	for _, d := range s.more {
		sum += d
	}
	s.told = max(s.told, sum)
	return s.told
}
