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

// Summary adds up rows by application and resource. It also adds the processes of an application. Its memory depends
// only on the number of names. Commands with their own rows, such as windowstat replay, create one with [NewSummary].
//
// The average response time of a sum is the average over all calls. The log has only the average of each second,
// rounded down to whole milliseconds, so the result may be up to a millisecond too low.
type Summary struct {
	zone        *time.Location
	by          *Column                     // determines the order, and the busiest second
	byApp       map[string]map[string]*sums // by application and resource
	n           int                         // number of sums
	first, last time.Time                   // first and last second with rows
	latest      *sums                       // sums of the last row
}

// NewSummary returns a Summary in descending order of passes, which prints times in a zone.
func NewSummary(zone *time.Location) *Summary { return &Summary{zone: zone, by: &columns[0]} }

// sums has the sums of one resource of an application, the second with the most of a column over all processes, and the
// second with the worst average response time.
type sums struct {
	metriclog.Row // Start and RT are set by rows; Concurrency is the maximum of any second and process
	summary       *Summary
	// rt is a float64, because an int64 of nanoseconds would overflow after 292 years of response times.
	rt float64 // sum over all calls, in nanoseconds

	// now and current add up the processes of an application within one second. The peak is the highest such sum.
	now     time.Time // the second of the last row
	current int64     // value of by in the second now, so far
	// peak is the highest value of the column by in a second, and peakAt is this second.
	peak   int64
	peakAt time.Time
	// worst is the highest average of one process in one second. Averages of several processes are not combined.
	worst   time.Duration // highest average response time of a second
	worstAt time.Time

	// next saves most look-ups in the map, see find.
	next *sums // sums of the row that followed last time, a guess for the next row
}

// maxSummed is the maximum number of sums. The rows of further resources are added to [collector.Other].
const maxSummed = 100_000

// Add adds a row. Rows must be in the order of their seconds, because the busiest second is found by comparing adjacent
// rows.
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
	// The average times the number of calls is the sum of their response times, as exact as the rounded averages allow.
	x.rt += float64(r.RT) * float64(r.Success)
	if !r.Start.Equal(x.now) {
		x.now, x.current = r.Start, 0
	}
	// With equal values the first second stays the peak.
	if x.current += t.by.value(r); x.current > x.peak {
		x.peak, x.peakAt = x.current, r.Start
	}
	if r.RT > x.worst {
		x.worst, x.worstAt = r.RT, r.Start
	}
}

// find returns the sums for a row, and creates them if needed. If there are maxSummed sums, it returns the sums of
// [collector.Other] for a new name.
func (t *Summary) find(r *metriclog.Row) *sums {
	// Most seconds have the same resources in the same order. Guess that the next resource is the one that followed
	// last time. The guess saves a look-up in the map, which would take 5% of the time of a replay.
	if t.latest != nil {
		if x := t.latest.next; x != nil && x.Resource == r.Resource && x.App == r.App {
			t.latest = x
			return x
		}
	}
	resources, name := t.byApp[r.App], r.Resource
	x := resources[name]
	// A scanner of security holes may have caused many names. They count as Other. The total remains separate.
	if x == nil && t.n >= maxSummed && name != collector.InboundTotal {
		name = collector.Other
		x = resources[name]
	}
	if x == nil {
		if t.byApp == nil {
			t.byApp = map[string]map[string]*sums{}
		}
		if resources == nil {
			resources = map[string]*sums{}
			t.byApp[r.App] = resources
		}
		// The row has no PID, because it may add several processes.
		x = &sums{summary: t, Row: metriclog.Row{App: r.App, Resource: name}}
		resources[name] = x
		t.n++
	}
	if t.latest != nil {
		t.latest.next = x
	}
	t.latest = x
	return x
}

// rows yields the sums of a step that begins at begin, in descending order of a column. The total of inbound calls is
// not a resource, so it is the last row.
func (t *Summary) rows(begin time.Time) iter.Seq[*row] {
	inbound := func(x *sums) int {
		if x.Resource == collector.InboundTotal {
			return 1
		}
		return 0
	}
	// Sort pointers, because a sums has about twenty fields.
	all := make([]*sums, 0, t.n)
	for _, resources := range t.byApp {
		all = slices.AppendSeq(all, maps.Values(resources))
	}
	// The names make the order of equal values stable, so two runs print the same output.
	slices.SortFunc(all, func(a, b *sums) int {
		return cmp.Or(inbound(a)-inbound(b), cmp.Compare(t.by.value(&b.Row), t.by.value(&a.Row)),
			cmp.Compare(a.App, b.App), cmp.Compare(a.Resource, b.Resource))
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

// added yields the sums of rows: for each step, or for the range if q has no Step. With Top, it yields at most Top
// resources of a step, and no total.
func added(rows iter.Seq[*row], q *Query) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		// The zero end makes the first row begin a step. Without Step, begin stays the beginning of the range.
		t, begin, end := &Summary{by: q.By}, q.From, time.Time{}
		// step yields the sums of the current step.
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
			// Steps without rows do not appear.
			if q.Step > 0 && !r.Start.Before(end) {
				if !step() {
					return
				}
				// Start from scratch: peaks and averages belong to one step.
				t = &Summary{by: q.By}
				begin, end = stepOf(r.Start, q.Step, q.Zone)
			}
			t.Add(r.Row)
		}
		step()
	}
}

// stepOf returns the step that contains a second. Steps begin at midnight in the zone. The last step of a day ends at
// the next midnight, even if the day has 23 or 25 hours.
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

// writeSummary writes the sums of a range as a table with rates, shares, and the second with the worst average response
// time. A rate is the average from the first second with a row to the last one. Times have a date only if the range has
// several days.
func writeSummary(w io.Writer, zone *time.Location, rows iter.Seq[*row]) error {
	// A tabwriter needs all lines to find the widths of the columns. The sums are in memory anyway.
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	format, seconds := "", 0.0
	for r := range rows {
		x := r.sums
		if format == "" {
			first, last := x.summary.first.In(zone), x.summary.last.In(zone)
			const day = "2006-01-02-07:00"
			// The comparison includes the offset, because the same time of day occurs twice when clocks are set back.
			if format = time.TimeOnly; first.Format(day) != last.Format(day) {
				format = TimeLayout
			}
			// The log may cover only a part of the range. Compute rates over this part.
			// Both seconds are included, hence the 1.
			seconds = last.Sub(first).Seconds() + 1
			if _, err := fmt.Fprintf(w, "%.0f seconds, from %s to %s\n\n", seconds, first.Format(TimeLayout),
				last.Format(TimeLayout)); err != nil {
				return err
			}
			fmt.Fprintln(columns,
				"pass\tper second\tpeak\tat\tblock\tshare\tcomplete\texception\tshare\tworst rt\tat\t  resource")
		}
		name := Visible(x.Resource)
		if len(x.summary.byApp) > 1 { // several applications
			name = Visible(x.App) + ": " + name
		}
		fmt.Fprintf(columns, "%d\t%s\t%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t  %s\n", x.Pass,
			rate(float64(x.Pass)/seconds), x.peak, formatTime(x.peakAt, zone, format, "-"), x.Block,
			share(x.Block, x.Pass+x.Block), x.Success, x.Exception, share(x.Exception, x.Success), x.worstRT(),
			formatTime(x.worstAt, zone, format, "-"), name)
	}
	if format == "" { // no rows
		return nil
	}
	return columns.Flush()
}

// rate formats a number per second with at least three significant digits. It shows very small rates as <0.001.
func rate(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3g", v)
}

// worstRT returns the highest average response time of a second, or - if no call completed.
func (x *sums) worstRT() string {
	if x.worstAt.IsZero() {
		return "-"
	}
	return x.worst.Round(time.Microsecond).String()
}

// share formats a part as a percentage of the whole, or - if the whole is 0.
func share(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(whole))
}

// Write writes the table that [Options].Summary prints. It writes nothing without rows.
func (t *Summary) Write(w io.Writer) error { return writeSummary(w, t.zone, t.rows(time.Time{})) }
