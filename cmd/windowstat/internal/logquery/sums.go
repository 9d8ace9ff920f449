package logquery

import (
	"cmp"
	"io"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// totals adds rows up, by application and resource; the processes of an application count together. Only what adds up is added:
// the average response time is that of all calls, each counted with the average of its row, which the log has in whole
// milliseconds, rounded down. Its memory is that of the names.
type totals struct {
	by          *column // of the busiest second
	of          map[sumKey]*sums
	first, last time.Time // seconds
	latest      *sums     // to which a row was added last
	severalApps bool
}

type sumKey struct{ app, resource string }

// sums are what one resource did.
type sums struct {
	metriclog.Row // Start and RT are not set, and Concurrency is the most of a second and process
	of            *totals
	rt            float64 // of all calls, in nanoseconds

	now     time.Time // the second of the last row
	current int64     // what there was in it so far
	peak    int64
	peakAt  time.Time
	worst   time.Duration // highest average response time of a second
	worstAt time.Time

	next *sums // what followed the last time, and mostly does again
}

// maxSummed bounds the resources that are kept apart. What comes later counts as [collector.Other].
const maxSummed = 100_000

// add adds a row. Rows must ascend by second.
func (t *totals) add(r *metriclog.Row) {
	if t.first.IsZero() {
		t.first = r.Start
	}
	t.last = r.Start
	x := t.find(r)
	x.Pass += r.Pass
	x.Block += r.Block
	x.Success += r.Success
	x.Exception += r.Exception
	x.OccupiedPass += r.OccupiedPass
	x.Concurrency = max(x.Concurrency, r.Concurrency)
	x.rt += float64(r.RT) * float64(r.Success)
	if !r.Start.Equal(x.now) {
		x.now, x.current = r.Start, 0
	}
	if x.current += t.by.of(r); x.current > x.peak {
		x.peak, x.peakAt = x.current, r.Start
	}
	if r.RT > x.worst {
		x.worst, x.worstAt = r.RT, r.Start
	}
}

// find returns the sums that a row is added to.
func (t *totals) find(r *metriclog.Row) *sums {
	if t.latest != nil {
		if x := t.latest.next; x != nil && x.Resource == r.Resource && x.App == r.App {
			t.latest = x
			return x
		}
	}
	key := sumKey{r.App, r.Resource}
	x := t.of[key]
	if x == nil && len(t.of) >= maxSummed && r.Resource != collector.InboundTotal {
		key.resource = collector.Other
		x = t.of[key]
	}
	if x == nil {
		if t.of == nil {
			t.of = map[sumKey]*sums{}
		}
		t.severalApps = t.severalApps || t.latest != nil && t.latest.App != key.app
		x = &sums{of: t, Row: metriclog.Row{App: key.app, Resource: key.resource}}
		t.of[key] = x
	}
	if t.latest != nil {
		t.latest.next = x
	}
	t.latest = x
	return x
}

// sorted returns all, those with the most of a column first; all inbound traffic, which is no resource, comes last.
func (t *totals) sorted() []*sums {
	all := make([]*sums, 0, len(t.of))
	for _, x := range t.of {
		all = append(all, x)
	}
	inbound := func(x *sums) int {
		if x.Resource == collector.InboundTotal {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(a, b *sums) int {
		return cmp.Or(inbound(a)-inbound(b), cmp.Compare(t.by.of(&b.Row), t.by.of(&a.Row)), cmp.Compare(a.App, b.App), cmp.Compare(a.Resource, b.Resource))
	})
	return all
}

// steps prints rows added up: those of each step of the clock, or all of them.
type steps struct {
	printer
	zone  *time.Location
	step  time.Duration // 0 for all
	top   int           // how many resources of a step are printed; 0 for all, and the total of inbound calls
	begin time.Time     // of the step; if there is none, of all
	end   time.Time
	totals
}

func (s *steps) print(r *row) error {
	if s.step > 0 && !r.Start.Before(s.end) {
		if err := s.write(); err != nil {
			return err
		}
		s.begin, s.end = stepOf(r.Start, s.step, s.zone)
	}
	s.add(r.Row)
	return nil
}

// stepOf is the step that a second is in. Steps are counted from midnight, and the last one ends there: on a day that is longer
// or shorter, too.
func stepOf(second time.Time, step time.Duration, zone *time.Location) (begin, end time.Time) {
	y, m, d := second.In(zone).Date()
	midnight, next := dayStart(y, m, d, zone), dayStart(y, m, d+1, zone)
	if step == 24*time.Hour {
		return midnight, next
	}
	begin = midnight.Add(second.Sub(midnight).Truncate(step))
	end = begin.Add(step)
	if end.After(next) {
		end = next
	}
	return begin, end
}

// write prints the rows of a step, and begins another one.
func (s *steps) write() error {
	for i, x := range s.sorted() {
		if s.top > 0 && (i == s.top || x.Resource == collector.InboundTotal) {
			break
		}
		x.Start = s.begin
		if x.Success > 0 {
			x.RT = time.Duration(x.rt / float64(x.Success))
		}
		if err := s.printer.print(&row{Row: &x.Row, sums: x}); err != nil {
			return err
		}
	}
	s.totals = totals{by: s.by}
	return nil
}

func (s *steps) flush() error {
	if err := s.write(); err != nil {
		return err
	}
	return s.printer.flush()
}

// lastRows prints the last rows of all, as tail -n does.
type lastRows struct {
	printer
	rows []kept // a ring
	n    int    // how many rows there were
	most int
}

// kept is a copy of a row.
type kept struct {
	row
	of metriclog.Row
}

func (l *lastRows) print(r *row) error {
	if len(l.rows) < l.most {
		l.rows = append(l.rows, kept{})
	}
	k := &l.rows[l.n%l.most]
	l.n++
	line := append(k.line[:0], r.line...)
	k.row, k.of = *r, *r.Row
	k.line = line
	return nil
}

func (l *lastRows) flush() error {
	for i := max(0, l.n-l.most); i < l.n; i++ {
		k := &l.rows[i%l.most]
		k.Row = &k.of // the ring may have moved
		if err := l.printer.print(&k.row); err != nil {
			return err
		}
	}
	l.rows, l.n = nil, 0
	return l.printer.flush()
}

// Summary adds rows up to the table that [Options].Summary prints, for commands that have rows of their own. It must be made with
// [NewSummary].
type Summary struct {
	zone *time.Location
	totals
}

// NewSummary makes a Summary that shows times in a zone.
func NewSummary(zone *time.Location) *Summary {
	return &Summary{zone: zone, totals: totals{by: &columns[0]}}
}

// Add adds a row. Rows must ascend by second.
func (s *Summary) Add(r *metriclog.Row) { s.add(r) }

// Write writes the table, or nothing if there were no rows.
func (s *Summary) Write(w io.Writer) error {
	p := &steps{printer: newSummaryTable(w, layout{zone: s.zone}), totals: s.totals}
	return p.flush()
}
