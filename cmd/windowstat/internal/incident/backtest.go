package incident

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// LimitHelp is what a limit to try may look like.
const LimitHelp = "a resource or a pattern with *, qps or concurrency, and a number, such as 'GET /search qps 300'"

// limitText is a name, which may have spaces, and a grade and a count, which have none.
var limitText = regexp.MustCompile(`^\s*(.+?)\s+(qps|concurrency)\s+([0-9]{1,18})\s*$`)

// ParseLimit reads a limit, see [LimitHelp].
func ParseLimit(text string) (l collector.Limit, err error) {
	m := limitText.FindStringSubmatch(text)
	if m == nil {
		return l, fmt.Errorf("%q is not %s", text, LimitHelp)
	}
	l.Resource = m[1]
	if m[2] == collector.Concurrency.String() {
		l.Grade = collector.Concurrency
	}
	l.Count, _ = strconv.ParseInt(m[3], 10, 64) // so many digits fit
	return l, nil
}

// Span is seconds in a row in which a limit would have refused calls.
type Span struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"` // the last second
	Refused int64     `json:"refused_at_least"`
	Highest int64     `json:"highest"` // of one second
}

// Trial is what a limit would have done to a resource of a log, which is one process, as a limit is.
//
// Of qps a second is offered the calls that passed and those that were refused. A limit lets no more than its count pass in a calendar
// second, so the rest would have been refused, by it or by what refused them then. That is the least: its window slides from bucket to
// bucket, and what it refuses of a burst across two seconds shows in neither.
//
// Of concurrency the log has how many calls were in flight at once: as many of these as are too many would have been refused, in this
// second or before. Those of two seconds may be the same calls, so they are not added up.
type Trial struct {
	Limit     string    `json:"limit"`
	Log       string    `json:"log"`
	Resource  string    `json:"resource"`
	Offered   int64     `json:"offered"` // calls in the range: passed and refused
	Blocked   int64     `json:"blocked"` // that were refused then
	Refused   int64     `json:"refused_at_least"`
	Seconds   int64     `json:"seconds"` // in which calls would have been refused
	Highest   int64     `json:"highest"` // calls that were offered in a second, or were in flight
	HighestAt time.Time `json:"highest_time"`
	Spans     []Span    `json:"spans"`
}

// Backtest tries a limit on each resource that it is for, and returns first where it would have refused most. [collector.Other] is tried
// by its name only, as a pattern limits each of the names in it by itself.
func (s *Seconds) Backtest(limit collector.Limit) []Trial {
	all, of, add := []Trial{}, (*row).offered, sum
	if limit.Grade == collector.Concurrency { // two seconds may have the same calls
		of, add = (*row).inFlight, highest
	}
	for _, r := range s.resources() {
		if limit.Matches(r.name) && (r.name != collector.Other || limit.Resource == collector.Other) {
			t := s.over(r, of, limit.Count, add)
			t.Limit = fmt.Sprintf("%s %d", limit, limit.Count)
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b Trial) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Highest, a.Highest))
	})
	return all
}

// What is too much of a second goes with that of others as their sum, or the highest counts.
func sum(a, b int64) int64     { return a + b }
func highest(a, b int64) int64 { return max(a, b) }

// over finds the seconds of the range in which a number of a resource is above a count, and adds up by how much.
func (s *Seconds) over(r *resource, of func(*row) int64, count int64, add func(a, b int64) int64) Trial {
	t := Trial{Log: r.log.name, Resource: r.name, Spans: []Span{}}
	for i := range r.rows {
		x := &r.rows[i]
		if x.at < s.From || x.at > s.To {
			continue
		}
		t.Offered, t.Blocked = t.Offered+x.offered(), t.Blocked+x.refused()
		v, at := of(x), s.time(x.at)
		if v > t.Highest {
			t.Highest, t.HighestAt = v, at
		}
		over := v - count
		if over <= 0 {
			continue
		}
		t.Seconds, t.Refused = t.Seconds+1, add(t.Refused, over)
		if n := len(t.Spans); n == 0 || at.Sub(t.Spans[n-1].To) != time.Second {
			t.Spans = append(t.Spans, Span{From: at})
		}
		last := &t.Spans[len(t.Spans)-1]
		last.To, last.Refused, last.Highest = at, add(last.Refused, over), max(last.Highest, v)
	}
	return t
}
