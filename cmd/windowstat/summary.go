package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// summary adds rows up, by application and resource; the processes of an application count together. Its memory is that
// of the names. The zero value is ready, but for zone.
type summary struct {
	zone        *time.Location // of what is written; UTC if nil
	of          map[summaryKey]*sums
	first, last time.Time // seconds
	apps        map[string]bool
}

type summaryKey struct{ app, resource string }

// sums are what one resource did.
type sums struct {
	summaryKey
	pass, block, complete, exception int64

	now     time.Time // the second of the last row
	passing int64     // what passed in it so far
	peak    int64
	peakAt  time.Time
	worst   time.Duration // highest average response time of a second
	worstAt time.Time
}

// maxSummed bounds the resources that are kept apart. What comes later counts as [collector.Other].
const maxSummed = 100_000

// add adds a row. Rows must ascend by second.
func (s *summary) add(r *metriclog.Row) {
	if s.of == nil {
		s.of, s.apps, s.first = map[summaryKey]*sums{}, map[string]bool{}, r.Start
	}
	s.last = r.Start
	key := summaryKey{r.App, r.Resource}
	x := s.of[key]
	if x == nil {
		if len(s.of) >= maxSummed && r.Resource != collector.InboundTotal {
			key.resource = collector.Other
			x = s.of[key]
		}
		if x == nil {
			x = &sums{summaryKey: key}
			s.of[key], s.apps[r.App] = x, true
		}
	}
	x.pass += r.Pass
	x.block += r.Block
	x.complete += r.Success
	x.exception += r.Exception
	if !r.Start.Equal(x.now) {
		x.now, x.passing = r.Start, 0
	}
	if x.passing += r.Pass; x.passing > x.peak {
		x.peak, x.peakAt = x.passing, r.Start
	}
	if r.RT > x.worst {
		x.worst, x.worstAt = r.RT, r.Start
	}
}

// write writes a table, the resource with the most calls first; all inbound traffic, which is no resource, comes last.
// Averages are over all seconds from the first with a row to the last.
func (s *summary) write(w io.Writer) error {
	if len(s.of) == 0 {
		return nil
	}
	zone := s.zone
	if zone == nil {
		zone = time.UTC
	}
	var all []*sums
	for _, x := range s.of {
		all = append(all, x)
	}
	inbound := func(x *sums) int {
		if x.resource == collector.InboundTotal {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(a, b *sums) int {
		return cmp.Or(inbound(a)-inbound(b), cmp.Compare(b.pass+b.block, a.pass+a.block), cmp.Compare(a.app, b.app), cmp.Compare(a.resource, b.resource))
	})
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
	for _, x := range all {
		name := visible(x.resource)
		if len(s.apps) > 1 {
			name = visible(x.app) + ": " + name
		}
		fmt.Fprintf(out, "%d\t%s\t%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t  %s\n",
			x.pass, rate(float64(x.pass)/float64(seconds)), x.peak, at(x.peakAt), x.block, share(x.block, x.pass+x.block),
			x.complete, x.exception, share(x.exception, x.complete), x.worstRT(), at(x.worstAt), name)
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
