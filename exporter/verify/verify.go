package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/internal/redact"
)

// partSize is how many seconds of resources are compared at a time.
const partSize = 10_000

// Check compares the database with the log in the range of the gap, whose other fields say what of the log. Seconds before the
// log begins, and those younger than Delay, are not compared; nor are those that the instance did not count, see [Heal]. The error
// says that the log or the database could not be read, or is [ErrSeveral]; the report then has what was compared before.
func Check(ctx context.Context, gap Gap, o Options) (Report, error) {
	if err := o.Check(gap.Namespace); err != nil {
		return Report{}, err
	}
	c := newComparison(gap, o)
	defer c.http.CloseIdleConnections()
	if err := c.find(ctx); err != nil {
		return c.done(err)
	}
	return c.run(ctx)
}

// comparison compares the log with a database, part by part.
type comparison struct {
	*client
	gap      Gap
	options  Options
	runs     *runs.File // of the log
	selector string
	found    bool // the database has series of the instance

	metrics   []string        // that are compared
	resources map[string]bool // that are compared; nil for all
	whose     *owners         // nil until something is missing
	partSize  int
	log       *expected
	report    Report
	between   bool         // some samples are not at a whole second
	again     bool         // some seconds are stored several times
	heal      seconds.Sink // gets what is missing; nil for nobody
}

func newComparison(gap Gap, o Options) *comparison {
	o.defaults(DefaultDelay)
	return &comparison{client: newClient(o), gap: gap, options: o, partSize: partSize, log: new(expected), report: Report{Labels: o.Labels}}
}

// clamp makes the range that of the seconds that can be compared, and returns what is to be said about it.
func clamp(gap *Gap, delay time.Duration) (notes []string, err error) {
	first, _, err := gap.Searcher.Span(gap.PIDs...)
	if err != nil {
		return nil, err
	}
	settled := time.Now().Add(-delay).Truncate(time.Second)
	if first.IsZero() {
		notes = append(notes, "the log is empty")
		gap.From, gap.To = settled.Add(time.Second), settled
		return notes, nil
	}
	if gap.From.Before(first) {
		gap.From = first
		notes = append(notes, "the log begins at "+first.UTC().Format(time.RFC3339)+"; earlier seconds are not compared")
	}
	if gap.To.IsZero() || gap.To.After(settled) {
		gap.To = settled
		notes = append(notes, fmt.Sprintf("seconds younger than %v may not have arrived yet, and are not compared", delay))
	}
	return notes, nil
}

// find finds what can be compared: the range, the instance, its metrics and resources.
func (c *comparison) find(ctx context.Context) (err error) {
	if c.report.Notes, err = clamp(&c.gap, c.options.Delay); err != nil {
		return err
	}
	c.report.From, c.report.To = c.gap.From.UTC(), c.gap.To.UTC()
	if c.gap.From.After(c.gap.To) {
		return nil
	}
	if c.runs, err = c.gap.runs(); err != nil {
		c.note(true, "the runs of the log are not known: %s", redact.Line(err.Error()))
	}
	c.metrics = seconds.Names(c.gap.namespace(), true)
	from, to := c.gap.From.Unix(), c.gap.To.Unix()
	all, err := c.series(ctx, selector(c.metrics, c.report.Labels), from, to)
	// A range in which everything is missing has no series of the instance; around it there may be some, and they tell its labels.
	if err == nil && len(all) == 0 {
		all, err = c.series(ctx, selector(c.metrics, c.report.Labels), from-around, to+around)
	}
	if c.found = len(all) > 0; c.found && err == nil {
		c.report.Labels, err = c.instance(ctx, all)
	}
	if err != nil {
		return err
	}
	c.note(!c.found, "the database has no series with these labels; are they those of the instance?")
	if !c.found || c.options.All {
		return nil
	}
	// Those that the database has of the instance are compared.
	resources, err := c.values(ctx, "resource", selector(c.metrics, c.report.Labels), from-around, to+around)
	c.resources = map[string]bool{"": true}
	for _, resource := range resources {
		c.resources[resource] = true
	}
	c.metrics = slices.DeleteFunc(c.metrics, func(name string) bool {
		return !slices.ContainsFunc(all, func(x stored) bool { return x.metric == name && matches(c.report.Labels, x.labels) })
	})
	return err
}

// compares reports whether a series is one that the database has, unless all are compared.
func (c *comparison) compares(s *series) bool {
	return slices.Contains(c.metrics, s.metric) && (c.resources == nil || c.resources[s.resource])
}

// run compares everything.
func (c *comparison) run(ctx context.Context) (Report, error) {
	if c.gap.From.After(c.gap.To) {
		return c.done(nil)
	}
	c.log = newExpected(table.Run(c.gap.namespace()).Name)
	c.selector = selector(append(slices.Clip(c.metrics), c.log.runs.metric), c.report.Labels)
	from := c.gap.From.Unix()
	malformed, err := c.gap.emit(ctx, c.runs, c.partSize, c.log, func(before time.Time) error {
		// Retention goes on while the log is read. What it has deleted meanwhile was not read, and would look as if the log did not have it.
		first, _, err := c.gap.Searcher.Span(c.gap.PIDs...) // files may have been deleted since
		if err != nil {
			return err
		}
		if cut := first.Unix(); cut > from {
			c.note(true, "the log was cut while it was read: %s and what follows is not compared", time.Unix(from, 0).UTC().Format(time.RFC3339))
			from = cut
		}
		err = c.compare(ctx, from, before.Unix()-1)
		c.log.reset()
		from = max(from, before.Unix())
		return err
	})
	c.note(malformed > 0, "%d lines of the log are malformed, and were left out", malformed)
	if err == nil {
		c.noteDeduplication(ctx)
	}
	return c.done(err)
}

// compare compares the seconds from and to, Unix times, and those between.
func (c *comparison) compare(ctx context.Context, from, to int64) error {
	if from > to {
		return nil
	}
	return divided(from, to, func(from, to int64) error {
		all, err := c.samples(ctx, c.selector, from, to)
		if err != nil {
			return err
		}
		for warning := range c.warned {
			if c.heal != nil { // what is not in the response may be in the database
				return fmt.Errorf("nothing is written while the server warns: %s", warning)
			}
		}
		p := &part{comparison: c, from: from, to: to, seconds: map[int64]*second{}}
		if err := p.sort(all); err != nil {
			return err
		}
		return p.compare(ctx)
	})
}

// note adds a note to the report if something is so.
func (c *comparison) note(is bool, format string, args ...any) {
	if is {
		c.report.Notes = append(c.report.Notes, fmt.Sprintf(format, args...))
	}
}

// done completes the report. The error is why there is no more of it.
func (c *comparison) done(err error) (Report, error) {
	findings, metrics, resources := []Finding{}, map[string]bool{}, map[string]bool{}
	for _, s := range c.log.series {
		switch {
		case s.finding != nil:
			findings = append(findings, *s.finding)
		case !slices.Contains(c.metrics, s.metric):
			metrics[s.metric] = true
		case !c.compares(s):
			resources[s.resource] = true
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Metric, b.Metric))
	})
	const left = "the database does not have %v of the instance, and they are not compared: is it asked for them?"
	c.note(len(metrics) > 0, left, strings.Join(slices.Sorted(maps.Keys(metrics)), ", "))
	c.note(len(resources) > 0, left, fmt.Sprintf("%d resources", len(resources)))
	c.note(c.report.Idle > 0, "%d samples of idle seconds are not in the database, and need not be", c.report.Idle)
	c.note(c.between, "samples of the database are not at whole seconds: is honor_timestamps true?")
	c.note(c.again, "the database has several samples of one second: VictoriaMetrics needs -dedup.minScrapeInterval=1ms")
	c.note(c.report.ranges > maxRanges, "only the first %d ranges are listed", maxRanges)
	r := c.report
	r.Findings, r.Notes = findings, slices.Clone(r.Notes)
	r.Warnings = slices.AppendSeq([]string{}, maps.Keys(c.warned))
	slices.Sort(r.Warnings)
	if err != nil {
		err = fmt.Errorf("verify: %w", err)
	}
	return r, err
}
