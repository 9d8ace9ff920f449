package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// summary adds rows up to a table. The zero value is ready, but for zone.
type summary struct {
	zone        *time.Location // of what is written; UTC if nil
	first, last time.Time      // seconds
	totals
}

// add adds a row. Rows must ascend by second.
func (s *summary) add(r *metriclog.Row) {
	if s.first.IsZero() {
		s.first, s.by = r.Start, &columns[0] // pass
	}
	s.last = r.Start
	s.totals.add(r)
}

// write writes the table, the resource with the most calls first; all inbound traffic comes last. Averages are over all seconds
// from the first with a row to the last.
func (s *summary) write(w io.Writer) error {
	if len(s.of) == 0 {
		return nil
	}
	zone := s.zone
	if zone == nil {
		zone = time.UTC
	}
	seconds := int64(s.last.Sub(s.first)/time.Second) + 1
	layout := time.TimeOnly
	if s.first.In(zone).Format("2006-01-02-07:00") != s.last.In(zone).Format("2006-01-02-07:00") {
		layout = timeLayout
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.In(zone).Format(layout)
	}
	if _, err := fmt.Fprintf(w, "%d seconds, from %s to %s\n\n", seconds, s.first.In(zone).Format(timeLayout), s.last.In(zone).Format(timeLayout)); err != nil {
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "pass\tper second\tpeak\tat\tblock\tshare\tcomplete\texception\tshare\tworst rt\tat\t  resource")
	all := s.sorted(func(r *metriclog.Row) int64 { return r.Pass + r.Block })
	several := slices.ContainsFunc(all, func(x *sums) bool { return x.App != all[0].App })
	for _, x := range all {
		name := visible(x.Resource)
		if several {
			name = visible(x.App) + ": " + name
		}
		fmt.Fprintf(out, "%d\t%s\t%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t  %s\n",
			x.Pass, rate(float64(x.Pass)/float64(seconds)), x.peak, at(x.peakAt), x.Block, share(x.Block, x.Pass+x.Block),
			x.Success, x.Exception, share(x.Exception, x.Success), x.worstRT(), at(x.worstAt), name)
	}
	return out.Flush()
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

// summaryPrinter prints a summary in the place of rows.
type summaryPrinter struct {
	summary
	out io.Writer
}

func (p *summaryPrinter) print(r *row) error {
	p.add(r.Row)
	return nil
}

func (p *summaryPrinter) flush() error { return p.write(p.out) }
