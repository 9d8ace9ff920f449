package logquery

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// table is for reading. The names are behind the numbers, so that no name is too long for its column.
type table struct {
	*bufio.Writer
	layout
	stamp stamp
	begun bool
	line  []byte
}

// timeLayout can be given to --from and --to.
const timeLayout = "2006-01-02 15:04:05-07:00"

func newTable(w io.Writer, l layout) printer {
	return &table{Writer: bufio.NewWriter(w), layout: l, stamp: stamp{format: timeLayout, zone: l.zone}}
}

func (p *table) print(r *row) error {
	if !p.begun {
		p.begun = true
		p.head()
	}
	p.line = append(p.line[:0], p.stamp.of(r.Start)...)
	for i := range columns {
		c := &columns[i]
		v := c.of(r.Row)
		if c.time {
			v /= int64(time.Millisecond)
		}
		p.number(c.title, v)
	}
	if p.layout.sums {
		p.number("peak", r.sums.peak)
		at := "-"
		if !r.sums.peakAt.IsZero() {
			at = r.sums.peakAt.In(p.zone).Format(timeLayout)
		}
		p.line = fmt.Appendf(p.line, "  %-*s", len(timeLayout), at)
	}
	if p.several {
		p.line = fmt.Appendf(p.line, "  %-12s", Visible(metriclog.Log{App: r.App, PID: r.PID}.String()))
	}
	p.line = append(append(append(p.line, "  "...), Visible(r.Resource)...), '\n')
	_, err := p.Write(p.line)
	return err
}

// number appends a number in its column.
func (p *table) number(title string, v int64) {
	var buf [20]byte
	digits := strconv.AppendInt(buf[:0], v, 10)
	for range max(width(title)-len(digits), 0) + 2 {
		p.line = append(p.line, ' ')
	}
	p.line = append(p.line, digits...)
}

func (p *table) head() {
	fmt.Fprintf(p, "%-*s", len(timeLayout), "time")
	for _, c := range columns {
		fmt.Fprintf(p, "  %*s", width(c.title), c.title)
	}
	if p.layout.sums {
		fmt.Fprintf(p, "  %*s  %-*s", width("peak"), "peak", len(timeLayout), "at")
	}
	if p.several {
		fmt.Fprintf(p, "  %-12s", "log")
	}
	fmt.Fprintln(p, "  resource")
}

// width is that of a column of numbers, which holds its title, and six digits at least.
func width(title string) int { return max(len(title), 6) }

func (p *table) flush() error { return p.Flush() }

// summaryTable is for reading the sums of a range: with rates, shares, and the second with the worst average response time.
// Averages are over all seconds from the first with a row to the last.
type summaryTable struct {
	layout
	out     io.Writer
	columns *tabwriter.Writer // nil until there is a row
	seconds float64
	format  string // of times
}

func newSummaryTable(w io.Writer, l layout) printer { return &summaryTable{layout: l, out: w} }

func (p *summaryTable) print(r *row) error {
	x := r.sums
	if p.columns == nil {
		if err := p.begin(x.of.first.In(p.zone), x.of.last.In(p.zone)); err != nil {
			return err
		}
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.In(p.zone).Format(p.format)
	}
	name := Visible(x.Resource)
	if x.of.severalApps {
		name = Visible(x.App) + ": " + name
	}
	fmt.Fprintf(p.columns, "%d\t%s\t%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t  %s\n",
		x.Pass, rate(float64(x.Pass)/p.seconds), x.peak, at(x.peakAt), x.Block, share(x.Block, x.Pass+x.Block),
		x.Success, x.Exception, share(x.Exception, x.Success), x.worstRT(), at(x.worstAt), name)
	return nil
}

// begin writes what is above the rows. Times have a date if the seconds are of several days.
func (p *summaryTable) begin(first, last time.Time) error {
	const day = "2006-01-02-07:00"
	if p.format = time.TimeOnly; first.Format(day) != last.Format(day) {
		p.format = timeLayout
	}
	p.seconds = last.Sub(first).Seconds() + 1
	p.columns = tabwriter.NewWriter(p.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	if _, err := fmt.Fprintf(p.out, "%.0f seconds, from %s to %s\n\n", p.seconds, first.Format(timeLayout), last.Format(timeLayout)); err != nil {
		return err
	}
	fmt.Fprintln(p.columns, "pass\tper second\tpeak\tat\tblock\tshare\tcomplete\texception\tshare\tworst rt\tat\t  resource")
	return nil
}

func (p *summaryTable) flush() error {
	if p.columns == nil {
		return nil
	}
	return p.columns.Flush()
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
