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

// LimitHelp describes the syntax of a limit.
const LimitHelp = "a resource or a pattern with *, qps or concurrency, and a number, such as 'GET /search qps 300'"

// limitText matches the three parts of a limit: the name, which may contain spaces, the grade, and the count.
var limitText = regexp.MustCompile(`^\s*(.+?)\s+(qps|concurrency)\s+([0-9]{1,18})\s*$`)

// ParseLimit parses a limit, see [LimitHelp].
func ParseLimit(text string) (l collector.Limit, err error) {
	m := limitText.FindStringSubmatch(text)
	if m == nil {
		return l, fmt.Errorf("%q is not %s", text, LimitHelp)
	}
	l.Resource = m[1]
	if m[2] == collector.Concurrency.String() {
		l.Grade = collector.Concurrency
	}
	l.Count, _ = strconv.ParseInt(m[3], 10, 64) // 18 digits fit
	return l, nil
}

// Span is a range of consecutive seconds. A limit would have refused calls in each of them.
type Span struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"` // the last second
	Refused int64     `json:"refused_at_least"`
	Highest int64     `json:"highest"` // calls of the busiest second, or the highest maximum in flight
}

// Trial has the effect that a limit would have had on a resource of one log. A log has the calls of one process, and a
// limit applies to each process separately.
//
// For qps, the calls of a second are the passed and the blocked ones. At most Count calls pass a limit in a calendar
// second, so the excess would have been refused, by this limit or by the cause of the actual blocks. Refused is a lower
// bound, because the window of the limit slides from bucket to bucket: in a burst across two seconds, the limit refuses
// calls although neither second exceeds Count.
//
// For concurrency, the log has the maximum number of calls in flight in each second. The excess would have been refused
// in the same second or before. A long call is in flight in several seconds, so Refused is the excess of the highest
// second, not a sum.
type Trial struct {
	Limit     string    `json:"limit"`
	Log       string    `json:"log"`
	Resource  string    `json:"resource"`
	Offered   int64     `json:"offered"`          // calls in the range, passed and blocked
	Blocked   int64     `json:"blocked"`          // calls in the range that were blocked
	Refused   int64     `json:"refused_at_least"` // lower bound of the calls that the limit refuses
	Seconds   int64     `json:"seconds"`          // number of seconds with refused calls
	Highest   int64     `json:"highest"`          // calls of the busiest second, or the maximum in flight
	HighestAt time.Time `json:"highest_time"`
	Spans     []Span    `json:"spans"`
}

// Backtest applies a limit to each resource that it matches. It returns the results in descending order of refused
// calls. A pattern does not match [collector.Other]: a limit applies to each name separately, and Other has the calls
// of several names.
func (s *Seconds) Backtest(limit collector.Limit) []Trial {
	all, value, add := []Trial{}, (*row).offered, sum
	if limit.Grade == collector.Concurrency { // see Trial
		value, add = (*row).inFlight, highest
	}
	for _, r := range s.resources() {
		if limit.Matches(r.name) && (r.name != collector.Other || limit.Resource == collector.Other) {
			t := s.excess(r, value, limit.Count, add)
			// The text of a limit has its resource and grade. The count is added, because two limits may differ only in
			// their counts.
			t.Limit = fmt.Sprintf("%s %d", limit, limit.Count)
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b Trial) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Highest, a.Highest))
	})
	return all
}

// sum and highest combine the excess of two seconds: sum for qps, and highest for concurrency.
func sum(a, b int64) int64     { return a + b }
func highest(a, b int64) int64 { return max(a, b) }

// excess compares a value of a resource with count in each second of the range. value returns the value of a second,
// and add combines the excess of two seconds.
func (s *Seconds) excess(
	r *resource, value func(*row) int64, count int64, add func(a, b int64) int64,
) Trial {
	t := Trial{Log: r.log.name, Resource: r.name, Spans: []Span{}}
	for i := range r.rows {
		x := &r.rows[i]
		// The rows include the seconds around the range, which onsets need.
		if x.at < s.From || x.at > s.To {
			continue
		}
		t.Offered, t.Blocked = t.Offered+x.offered(), t.Blocked+x.blocked()
		v, at := value(x), s.time(x.at)
		if v > t.Highest {
			t.Highest, t.HighestAt = v, at
		}
		over := v - count
		if over <= 0 {
			continue
		}
		t.Seconds, t.Refused = t.Seconds+1, add(t.Refused, over)
		// Begin a new span, unless this second continues the last one. A second without a row interrupts a span.
		if n := len(t.Spans); n == 0 || at.Sub(t.Spans[n-1].To) != time.Second {
			t.Spans = append(t.Spans, Span{From: at})
		}
		last := &t.Spans[len(t.Spans)-1]
		last.To, last.Refused, last.Highest = at, add(last.Refused, over), max(last.Highest, v)
	}
	return t
}
