package logquery

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Summary adds rows up, by application and resource; the processes of an application count together. Only what adds up is added:
// the average response time is that of all calls, each counted with the average of its row, which the log has in whole
// milliseconds, rounded down. Its memory is that of the names. Commands that have rows of their own make one with [NewSummary].
type Summary struct {
	zone        *time.Location
	by          *Column                     // of the busiest second
	of          map[string]map[string]*sums // by application and resource
	n           int                         // of them
	first, last time.Time                   // seconds
	latest      *sums                       // to which a row was added last
}

// NewSummary makes a Summary that shows times in a zone.
func NewSummary(zone *time.Location) *Summary { return &Summary{zone: zone, by: &columns[0]} }

// sums are what one resource did: what adds up, the busiest second, which is that of all processes together, and the worst average of a second.
type sums struct {
	metriclog.Row // Start and RT are not set, and Concurrency is the most of a second and process
	of            *Summary
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

// Add adds a row. Rows must ascend by second.
func (t *Summary) Add(r *metriclog.Row) {
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

// find returns the sums that a row is added to. Beyond maxSummed resources these are those of all others.
func (t *Summary) find(r *metriclog.Row) *sums {
	// Seconds have mostly the same resources in the same order, so the next one is mostly known without a look at the map, which would be a
	// twentieth of a replay.
	if t.latest != nil {
		if x := t.latest.next; x != nil && x.Resource == r.Resource && x.App == r.App {
			t.latest = x
			return x
		}
	}
	of, name := t.of[r.App], r.Resource
	x := of[name]
	// Names may be those of a scanner. The total is kept apart whatever happens.
	if x == nil && t.n >= maxSummed && name != collector.InboundTotal {
		name = collector.Other
		x = of[name]
	}
	if x == nil {
		if t.of == nil {
			t.of = map[string]map[string]*sums{}
		}
		if of == nil {
			of = map[string]*sums{}
			t.of[r.App] = of
		}
		x = &sums{of: t, Row: metriclog.Row{App: r.App, Resource: name}}
		of[name] = x
		t.n++
	}
	if t.latest != nil {
		t.latest.next = x
	}
	t.latest = x
	return x
}

// rows yields the sums of a step that begins at a time, those with the most of a column first. All inbound traffic, which is no resource, comes last.
func (t *Summary) rows(begin time.Time) iter.Seq[*row] {
	inbound := func(x *sums) int {
		if x.Resource == collector.InboundTotal {
			return 1
		}
		return 0
	}
	all := make([]*sums, 0, t.n)
	for _, of := range t.of {
		all = slices.AppendSeq(all, maps.Values(of))
	}
	slices.SortFunc(all, func(a, b *sums) int {
		return cmp.Or(inbound(a)-inbound(b), cmp.Compare(t.by.of(&b.Row), t.by.of(&a.Row)), cmp.Compare(a.App, b.App), cmp.Compare(a.Resource, b.Resource))
	})
	return func(yield func(*row) bool) {
		for _, x := range all {
			x.Start = begin
			if x.Success > 0 {
				x.RT = time.Duration(x.rt / float64(x.Success))
			}
			if !yield(&row{Row: &x.Row, sums: x}) {
				return
			}
		}
	}
}

// added yields rows added up: those of each step of the clock, or of all of the range, which is one step. With Top there are only so many of a step, and
// no total of inbound calls.
func added(rows iter.Seq[*row], q *Query) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		t, begin, end := &Summary{by: q.By}, q.From, time.Time{}
		step := func() bool {
			n := 0
			for r := range t.rows(begin) {
				if q.Top > 0 && (n == q.Top || r.Resource == collector.InboundTotal) {
					break
				}
				if n++; !yield(r) {
					return false
				}
			}
			return true
		}
		for r := range rows {
			// A step without rows is none: nothing is printed of it.
			if q.Step > 0 && !r.Start.Before(end) {
				if !step() {
					return
				}
				t = &Summary{by: q.By}
				begin, end = stepOf(r.Start, q.Step, q.Zone)
			}
			t.Add(r.Row)
		}
		step()
	}
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

// writeSummary writes the sums of a range for reading: with rates, shares, and the second with the worst average response time.
// Averages are over all seconds from the first with a row to the last. Times have a date if these are of several days.
func writeSummary(w io.Writer, zone *time.Location, rows iter.Seq[*row]) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	format, seconds := "", 0.0
	for r := range rows {
		x := r.sums
		if format == "" {
			first, last := x.of.first.In(zone), x.of.last.In(zone)
			const day = "2006-01-02-07:00"
			if format = time.TimeOnly; first.Format(day) != last.Format(day) {
				format = TimeLayout
			}
			// Rates are those of the seconds that the log has, not of a range that may be longer.
			seconds = last.Sub(first).Seconds() + 1
			if _, err := fmt.Fprintf(w, "%.0f seconds, from %s to %s\n\n", seconds, first.Format(TimeLayout), last.Format(TimeLayout)); err != nil {
				return err
			}
			fmt.Fprintln(columns, "pass\tper second\tpeak\tat\tblock\tshare\tcomplete\texception\tshare\tworst rt\tat\t  resource")
		}
		name := Visible(x.Resource)
		if len(x.of.of) > 1 { // applications
			name = Visible(x.App) + ": " + name
		}
		fmt.Fprintf(columns, "%d\t%s\t%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t  %s\n",
			x.Pass, rate(float64(x.Pass)/seconds), x.peak, shown(x.peakAt, zone, format, "-"), x.Block, share(x.Block, x.Pass+x.Block),
			x.Success, x.Exception, share(x.Exception, x.Success), x.worstRT(), shown(x.worstAt, zone, format, "-"), name)
	}
	if format == "" { // there are no rows
		return nil
	}
	return columns.Flush()
}

// rate is a number a second, with three digits at least.
func rate(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3g", v)
}

// worstRT is the highest average response time of a second, if any is known.
func (x *sums) worstRT() string {
	if x.worstAt.IsZero() {
		return "-"
	}
	return x.worst.Round(time.Microsecond).String()
}

// share is a part of a whole, in percent.
func share(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(whole))
}

// Write writes the table that [Options].Summary prints, or nothing if there were no rows.
func (t *Summary) Write(w io.Writer) error { return writeSummary(w, t.zone, t.rows(time.Time{})) }
