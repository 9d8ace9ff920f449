package replay

import (
	"iter"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Second is one second of the replay. Rows is reused after the callback returns.
type Second struct {
	Start time.Time // in UTC
	Rows  []Row     // resources with calls or calls in flight
	Total node.MetricNode
}

// All yields the rows, and then the total under its name in a metric log.
func (s *Second) All() iter.Seq2[string, *node.MetricNode] {
	return func(yield func(string, *node.MetricNode) bool) {
		for i := range s.Rows {
			if !yield(s.Rows[i].Resource, &s.Rows[i].MetricNode) {
				return
			}
		}
		yield(collector.InboundTotal, &s.Total)
	}
}

// Row holds the numbers of one resource in a second.
type Row struct {
	Resource string
	node.MetricNode
}

// rows is the Counter of [Run]. It holds the records of one second. A Collector would do the same work, but it also
// keeps histories: if seconds have few calls, it would take twice the processor time of the rest of a replay.
type rows struct {
	names  *names
	each   func(*Second) error
	known  []record // by number of the name
	active []int32  // names with a row in this second
	total  record   // calls in flight of all resources; Over adds their counts
	second Second
}

// record holds the numbers of one resource in the current second. InFlightTime is the integral of the calls in flight:
//
//	calls   2       ┌────┐
//	        1  ┌────┘    └─────────┐
//	        0 ─┘                   └──────
//	           ^    ^    ^         ^     end of the second: move adds the area since the previous move
type record struct {
	node.MetricNode
	upTo   int64 // time of the last move, Unix nanoseconds
	active bool
}

// move adds by to the number of calls in flight at a time.
func (r *record) move(at, by int64) {
	r.InFlightTime += time.Duration(r.InFlight * (at - r.upTo))
	r.upTo = at
	r.InFlight += by
	r.InFlightMax = max(r.InFlightMax, r.InFlight)
}

// of returns the record of a name. The name gets a row in this second.
func (r *rows) of(name int32) *record {
	if n := len(r.names.list); n > len(r.known) {
		r.known = append(r.known, make([]record, n-len(r.known))...)
	}
	x := &r.known[name]
	if !x.active {
		x.active = true
		r.active = append(r.active, name)
	}
	return x
}

// Block implements timeline.Counter.
func (r *rows) Block(c *timeline.Call) { r.of(c.Name).Block += int64(c.N) }

// Begin implements timeline.Counter.
func (r *rows) Begin(c *timeline.Call) *collector.Entry {
	x := r.of(c.Name)
	x.Pass += int64(c.N)
	x.move(c.At, 1)
	r.total.move(c.At, 1)
	return nil
}

// End implements timeline.Counter. A call without a duration ends when it begins.
func (r *rows) End(c timeline.Completion) {
	x, d, n := r.of(c.Name), max(time.Duration(c.Duration), 0), int64(c.N)
	ended := node.Counts{Complete: n, RTSum: d * time.Duration(n), RTMin: d, RTMax: d}
	if c.Outcome == timeline.Failed {
		ended.Exception = n
	}
	x.Counts = x.Counts.Add(ended)
	x.move(c.Ended, -1)
	r.total.move(c.Ended, -1)
}

// Over implements timeline.Counter. It calls each with the rows of the second. The next second starts with the calls in
// flight.
func (r *rows) Over(second int64) error {
	s, end := &r.second, (second+1)*nanos
	s.Start, s.Rows = time.Unix(second, 0).UTC(), s.Rows[:0]
	next := func(x *record) node.MetricNode {
		x.move(end, 0)
		x.Start = s.Start
		done := x.MetricNode
		x.MetricNode = node.MetricNode{InFlight: done.InFlight, InFlightMax: done.InFlight}
		return done
	}
	s.Total = next(&r.total)
	active := r.active[:0]
	for _, name := range r.active {
		x := &r.known[name]
		s.Rows = append(s.Rows, Row{r.names.list[name], next(x)})
		s.Total.Counts = s.Total.Counts.Add(s.Rows[len(s.Rows)-1].Counts)
		if x.active = x.InFlight > 0; x.active {
			active = append(active, name)
		}
	}
	r.active = active
	return r.each(s)
}
