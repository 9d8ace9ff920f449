package logquery

import (
	"fmt"
	"io"
	"iter"
	"text/tabwriter"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// writeSummary writes the sums of a range for reading: with rates, shares, and the second with the worst average response time.
// Averages are over all seconds from the first with a row to the last. Times have a date if these are of several days.
func writeSummary(w io.Writer, zone *time.Location, rows iter.Seq[*row]) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	format, seconds := "", 0.0
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.In(zone).Format(format)
	}
	for r := range rows {
		x := r.sums
		if format == "" {
			first, last := x.of.first.In(zone), x.of.last.In(zone)
			const day = "2006-01-02-07:00"
			if format = time.TimeOnly; first.Format(day) != last.Format(day) {
				format = timeLayout
			}
			// Rates are those of the seconds that the log has, not of a range that may be longer.
			seconds = last.Sub(first).Seconds() + 1
			if _, err := fmt.Fprintf(w, "%.0f seconds, from %s to %s\n\n", seconds, first.Format(timeLayout), last.Format(timeLayout)); err != nil {
				return err
			}
			fmt.Fprintln(columns, "pass\tper second\tpeak\tat\tblock\tshare\tcomplete\texception\tshare\tworst rt\tat\t  resource")
		}
		name := Visible(x.Resource)
		if x.of.severalApps {
			name = Visible(x.App) + ": " + name
		}
		fmt.Fprintf(columns, "%d\t%s\t%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t  %s\n",
			x.Pass, rate(float64(x.Pass)/seconds), x.peak, at(x.peakAt), x.Block, share(x.Block, x.Pass+x.Block),
			x.Success, x.Exception, share(x.Exception, x.Success), x.worstRT(), at(x.worstAt), name)
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
	return writeSummary(w, s.zone, s.rows(time.Time{}))
}
