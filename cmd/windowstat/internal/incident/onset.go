package incident

import (
	"cmp"
	"slices"
	"time"
)

// The rule for a change. A number of a resource changes in the first second that meets these conditions:
//   - The second itself, and four of the five seconds that begin with it, are all above or all below the median of the
//     ten minutes before the range.
//   - The distance of these four seconds from the median is more than three times the distance of any four of five
//     seconds before the range.
//   - The distance is also more than half of the median, and more than a floor: four calls or five milliseconds.
//   - The distance of the four seconds from the median of the minute before them is more than three quarters of the
//     required distance. This excludes load that rises slowly: it leaves the median of ten minutes, but hardly differs
//     from the last minute.
//
// A burst of up to three seconds is therefore not a change. Neither is a variation that also occurs in the ten minutes
// before, such as a job in each minute. Errors in the ten minutes hide later changes, so the range should begin well
// before the first complaint.
//
// The help of windowstat onset states these numbers, too. Change both together.
const (
	runSeconds    = 5  // length of a run of seconds
	runChanged    = 4  // seconds of a run that must be distant from the median
	distanceRatio = 3  // minimum ratio of the distance to the largest one before the range
	minBaseline   = 10 // seconds needed before the range
	swingSeconds  = 60 // seconds before a change with which it is compared, too
)

// floors has the minimum distance for each column. A column with a floor of 0 is not searched for changes.
var floors = [columns]float64{pass: 4, block: 4, exception: 4, rtMs: 5, inFlight: 4}

// Change is a change of one number of a resource.
type Change struct {
	Number string    `json:"number"` // a column of the log
	Time   time.Time `json:"time"`   // the first second
	Before float64   `json:"before"` // median of the ten minutes before
	After  float64   `json:"after"`  // median of the five seconds from Time on
}

// Onset is the first change of a resource, and the changes of its other numbers.
type Onset struct {
	// Rank is one more than the number of onsets that were certainly earlier. Tied means that there is another onset
	// whose order relative to this one is unknown.
	Rank     int       `json:"rank"`
	Tied     bool      `json:"tied"`
	Time     time.Time `json:"time"` // of the first change
	Log      string    `json:"log"`
	Resource string    `json:"resource"`
	Changes  []Change  `json:"changes"` // by time
	resource *resource
}

// Onsets returns the resources that changed, the earliest first. Events within a second have no order in the log, so
// two onsets are tied if the time between them is less than a second. If the logs are from different hosts, whose
// clocks differ, the limit is a second plus clockOffset.
func (s *Seconds) Onsets(clockOffset time.Duration) []Onset {
	all := []Onset{}
	for _, r := range s.resources() {
		o := Onset{Log: r.log.name, Resource: r.name, resource: r}
		for column := range columns {
			if c, changed := s.change(r, column); changed && floors[column] > 0 {
				o.Changes = append(o.Changes, c)
			}
		}
		// The first change determines the order. Later changes of the same resource are often consequences of it: calls
		// that hang first raise the calls in flight, and then lower the passes.
		if len(o.Changes) > 0 {
			slices.SortStableFunc(o.Changes, func(a, b Change) int { return a.Time.Compare(b.Time) })
			o.Time = o.Changes[0].Time
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b Onset) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Log, b.Log), cmp.Compare(a.Resource, b.Resource))
	})
	// Compare each pair, because ties are not transitive: if a is tied with b, and b with c, then c may still be
	// certainly later than a.
	for i := range all {
		x := &all[i]
		x.Rank = 1
		for j := range all {
			// apart is positive if x is later than the onset j. Only then does the onset j raise the rank of x.
			apart := x.Time.Sub(all[j].Time)
			within := time.Second
			if all[j].resource.log.host != x.resource.log.host {
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

// point is the number of one second.
type point struct {
	at int64
	v  float64
}

// points returns the numbers of a column for the seconds of the log. A second without a row of the resource has no
// calls, and its number is 0. It has no point in the column of response times, because no call completed.
func (r *resource) points(column int) (list []point) {
	rows := r.rows
	for at := r.log.first; at <= r.log.last; at++ {
		for len(rows) > 0 && rows[0].at < at { // rows are out of order if Sentinel's clock was set back
			rows = rows[1:]
		}
		// The zero row is a second without calls.
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

// change finds the first change of a number in the range. ok is false if there is none, or if fewer than minBaseline
// seconds before the range have the number.
func (s *Seconds) change(r *resource, column int) (c Change, ok bool) {
	list := r.points(column)
	begin, _ := slices.BinarySearchFunc(list, s.From, func(p point, at int64) int { return cmp.Compare(p.at, at) })
	if begin < minBaseline {
		return c, false
	}
	// The median ignores short bursts in the time before the range. An average would not.
	baseline := median(list[:begin])
	// Search for a rise and for a fall. If there are both, the earlier one is the change.
	for _, sign := range []float64{1, -1} {
		largest := 0.
		for i := range begin - runSeconds + 1 {
			largest = max(largest, distance(list[i:i+runSeconds], baseline, sign))
		}
		// The three conditions on the distance have one limit, the largest of the three.
		limit := max(distanceRatio*largest, baseline/2, floors[column])
		for i := begin; i+runSeconds <= len(list) && list[i].at <= s.To; i++ {
			// The first second must be distant itself. Otherwise the run could begin with the second before the change,
			// because four of its five seconds are enough.
			run := list[i : i+runSeconds]
			sudden := func() bool { return distance(run, median(list[max(i-swingSeconds, 0):i]), sign) > limit*3/4 }
			if sign*(list[i].v-baseline) > limit && distance(run, baseline, sign) > limit && sudden() {
				if at := s.time(list[i].at); !ok || at.Before(c.Time) {
					c, ok = Change{names[column], at, baseline, median(list[i : i+runSeconds])}, true
				}
				break
			}
		}
	}
	return c, ok
}

// distance returns the largest distance from a value that four of five seconds reach or exceed. If sign is 1, it
// measures above the value, and if sign is -1, below. It returns a negative number if two or more seconds are on the
// other side.
func distance(five []point, from, sign float64) float64 {
	var all [runSeconds]float64
	for i, p := range five {
		all[i] = sign * (p.v - from)
	}
	slices.Sort(all[:])
	// The slice is in ascending order, so this element and the runChanged-1 elements after it reach the distance.
	return all[runSeconds-runChanged]
}

// median returns the median. For an even number of points it is the lower of the two in the middle.
func median(list []point) float64 {
	values := make([]float64, len(list))
	for i, p := range list {
		values[i] = p.v
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
