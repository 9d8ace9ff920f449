package incident

import (
	"cmp"
	"slices"
	"time"
)

// A number has left what it was in the second from which four of five seconds, that one included, are all above or all below its
// median of the ten minutes before, three times as far as any four of five seconds were then, and by more than half of the median and
// a floor: four calls, or five milliseconds.
//
// Four of five ignore a burst of up to three seconds. What the ten minutes had for longer, such as a job in each minute, is usual. Trouble
// that they had as well widens what is usual: From is best well before the first complaint.
const (
	steady   = 5  // seconds
	lasting  = 4  // of them
	farther  = 3  // times
	leastOld = 10 // seconds that are known before the range, or nothing is usual
)

// floors are how far a column must go to leave; one that is 0 is not looked at.
var floors = [columns]float64{pass: 4, block: 4, exception: 4, rtMs: 5, inFlight: 4}

// Change is a number that left.
type Change struct {
	Number string    `json:"number"` // a column of the log
	Time   time.Time `json:"time"`   // the second
	Before float64   `json:"before"` // median of the ten minutes before
	After  float64   `json:"after"`  // median of the five seconds
}

// Onset is when a resource left what it was.
type Onset struct {
	// Rank is one more than there are onsets that are surely earlier. Tied says that another one may have been before or after it.
	Rank     int       `json:"rank"`
	Tied     bool      `json:"tied"`
	Time     time.Time `json:"time"` // of the first change
	Log      string    `json:"log"`
	Resource string    `json:"resource"`
	Changes  []Change  `json:"changes"` // by time
	of       *resource
}

// Onsets returns the resources of which a number left, the first one first. Two onsets are tied if they are less than a second and, of
// different directories, the clocks' offset apart: what is in one second has no order, and clocks of hosts differ.
func (s *Seconds) Onsets(clockOffset time.Duration) []Onset {
	all := []Onset{}
	for _, r := range s.resources() {
		o := Onset{Log: r.log.name, Resource: r.name, of: r}
		for column := range columns {
			if c, left := s.left(r, column); left && floors[column] > 0 {
				o.Changes = append(o.Changes, c)
			}
		}
		if len(o.Changes) > 0 {
			slices.SortStableFunc(o.Changes, func(a, b Change) int { return a.Time.Compare(b.Time) })
			o.Time = o.Changes[0].Time
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b Onset) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Log, b.Log), cmp.Compare(a.Resource, b.Resource))
	})
	for i := range all {
		x := &all[i]
		x.Rank = 1
		for j := range all {
			apart := x.Time.Sub(all[j].Time)
			within := time.Second
			if all[j].of.log.host != x.of.log.host {
				within += clockOffset
			}
			if apart >= within {
				x.Rank++
			}
			x.Tied = x.Tied || i != j && apart.Abs() < within
		}
	}
	return all
}

// point is a number in a second.
type point struct {
	at int64
	v  float64
}

// points are the numbers of a column in the seconds of the log. Where a resource has no row there are no calls, and where none ended there
// is no response time.
func (r *resource) points(column int) (list []point) {
	rows := r.rows
	for at := r.log.first; at <= r.log.last; at++ {
		for len(rows) > 0 && rows[0].at < at { // Sentinel's clock was set back
			rows = rows[1:]
		}
		x := row{}
		if len(rows) > 0 && rows[0].at == at {
			x = rows[0]
		}
		if column != rtMs || x.v[complete] > 0 {
			list = append(list, point{at, float64(x.v[column])})
		}
	}
	return list
}

// left finds the second in which a number left.
func (s *Seconds) left(r *resource, column int) (c Change, ok bool) {
	list := r.points(column)
	begin, _ := slices.BinarySearchFunc(list, s.From, func(p point, at int64) int { return cmp.Compare(p.at, at) })
	if begin < leastOld {
		return c, false
	}
	usual := median(list[:begin])
	for _, sign := range []float64{1, -1} {
		far := 0.
		for i := range begin - steady + 1 {
			far = max(far, together(list[i:i+steady], usual, sign))
		}
		limit := max(farther*far, usual/2, floors[column])
		for i := begin; i+steady <= len(list) && list[i].at <= s.To; i++ {
			if sign*(list[i].v-usual) > limit && together(list[i:i+steady], usual, sign) > limit {
				if at := s.time(list[i].at); !ok || at.Before(c.Time) {
					c, ok = Change{names[column], at, usual, median(list[i : i+steady])}, true
				}
				break
			}
		}
	}
	return c, ok
}

// together returns how far four of five seconds are from a value at least, on one side.
func together(five []point, from, sign float64) float64 {
	var far [steady]float64
	for i, p := range five {
		far[i] = sign * (p.v - from)
	}
	slices.Sort(far[:])
	return far[steady-lasting]
}

// median returns the median, the lower one of two.
func median(list []point) float64 {
	values := make([]float64, len(list))
	for i, p := range list {
		values[i] = p.v
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
