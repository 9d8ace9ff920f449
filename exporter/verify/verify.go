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

// chunkSize is the number of seconds of resources that are compared at a time, such as 100 seconds of 100 resources.
const chunkSize = 10_000

// Check compares the database with the log in the range of the gap, for the resources and processes that the gap
// selects. Check does not compare seconds before the log begins, seconds younger than Options.Delay, and seconds that
// the instance did not count; see [Heal]. Check returns an error if it cannot read the log or the database, and
// [ErrSeveralInstances] if the labels do not select one instance. The Report then covers the seconds before the error.
func Check(ctx context.Context, gap Gap, o Options) (Report, error) {
	if err := o.Check(gap.Namespace); err != nil {
		return Report{}, err
	}
	c := newComparison(gap, o)
	defer c.http.CloseIdleConnections()
	if err := c.prepare(ctx); err != nil {
		return c.finish(err)
	}
	return c.run(ctx)
}

// comparison compares the log with a database, chunk by chunk. Call prepare, then run. Further calls of run repeat the
// comparison.
//
//	rows of the log --> Gap.emit --> logSamples --+
//	                                              +--> chunk --> Report
//	samples of the database --> client.samples ---+      |
//	                                                     +--> sink: missing samples that may be written
//	runs of the database --> ownership.decide -----------+
type comparison struct {
	*client
	gap       Gap
	options   Options
	chunkSize int
	sink      seconds.Sink // gets the missing samples that may be written; nil for a comparison only

	// Set by prepare.
	runs      *runs.File      // of the log
	hasSeries bool            // the database has series of the instance
	metrics   []string        // to compare
	resources map[string]bool // to compare; nil for all

	// Used by run.
	selector   string // of the metrics and the run, with the labels of the instance
	log        *logSamples
	ownership  *ownership // nil until a sample is missing
	report     Report
	fractions  bool // the database has samples that are not at a whole second
	duplicates bool // the database has several samples of one second
}

// newComparison returns a comparison without a sink. The options must be valid.
func newComparison(gap Gap, o Options) *comparison {
	o.defaults(DefaultDelay)
	return &comparison{
		client: newClient(o), gap: gap, options: o, chunkSize: chunkSize,
		log: new(logSamples), report: Report{Labels: o.Labels},
	}
}

// timestamp formats a time for notes and errors.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// clamp limits the range of the gap to seconds that can be compared, and returns notes about the others.
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
		notes = append(notes, "the log begins at "+timestamp(first)+"; earlier seconds are not compared")
	}
	if gap.To.IsZero() || gap.To.After(settled) {
		gap.To = settled
		notes = append(notes, fmt.Sprintf("seconds younger than %v may still arrive and are not compared", delay))
	}
	return notes, nil
}

// prepare finds what can be compared:
//
//   - the range: seconds of the log that are older than Options.Delay
//   - the runs of the log
//   - the labels of the instance in the database
//   - the metrics and resources that the database has of the instance, unless Options.All is set
//
// If the database has no series of the instance, prepare adds a note and leaves hasSeries false.
func (c *comparison) prepare(ctx context.Context) (err error) {
	if c.report.Notes, err = clamp(&c.gap, c.options.Delay); err != nil {
		return err
	}
	c.report.From, c.report.To = c.gap.From.UTC(), c.gap.To.UTC()
	if c.gap.From.After(c.gap.To) {
		return nil
	}
	if c.runs, err = c.gap.runs(); err != nil {
		c.noteIf(true, "cannot read all runs of the log: %s", redact.Line(err.Error()))
	}
	c.metrics = c.gap.metrics()
	from, to := c.gap.From.Unix(), c.gap.To.Unix()
	all, err := c.series(ctx, selector(c.metrics, c.report.Labels), from, to)
	// If the database lacks the whole range, the series around the range show the labels of the instance.
	if err == nil && len(all) == 0 {
		all, err = c.series(ctx, selector(c.metrics, c.report.Labels), from-searchMargin, to+searchMargin)
	}
	if c.hasSeries = len(all) > 0; c.hasSeries && err == nil {
		c.report.Labels, err = c.instance(ctx, all)
	}
	if err != nil {
		return err
	}
	c.noteIf(!c.hasSeries, "the database has no series with these labels; check the labels")
	if !c.hasSeries || c.options.All {
		return nil
	}
	instance := selector(c.metrics, c.report.Labels)
	resources, err := c.labelValues(ctx, "resource", instance, from-searchMargin, to+searchMargin)
	// The total has no label resource, and label values do not include the empty string.
	c.resources = map[string]bool{"": true}
	for _, resource := range resources {
		c.resources[resource] = true
	}
	c.metrics = slices.DeleteFunc(c.metrics, func(name string) bool {
		has := func(x stored) bool { return x.metric == name && matches(c.report.Labels, x.labels) }
		return !slices.ContainsFunc(all, has)
	})
	return err
}

// includes reports whether a series is compared: the database has its metric and its resource of the instance, or
// Options.All is set.
func (c *comparison) includes(s *series) bool {
	return slices.Contains(c.metrics, s.metric) && (c.resources == nil || c.resources[s.resource])
}

// run compares the whole range.
func (c *comparison) run(ctx context.Context) (Report, error) {
	if c.gap.From.After(c.gap.To) {
		return c.finish(nil)
	}
	c.log = newLogSamples(table.Run(c.gap.namespace()).Name)
	c.selector = selector(append(slices.Clip(c.metrics), c.log.runs.metric), c.report.Labels)
	from := c.gap.From.Unix()
	malformed, err := c.gap.emit(ctx, c.runs, c.chunkSize, c.log, func(before time.Time) error {
		// Retention may delete files of the log during the comparison. Seconds that were deleted before they were read
		// would look like extra seconds of the database.
		first, _, err := c.gap.Searcher.Span(c.gap.PIDs...)
		if err != nil {
			return err
		}
		if begin := first.Unix(); begin > from {
			c.noteIf(true, "retention deleted a part of the log during the comparison; "+
				"seconds from %s until %s are not compared", timestamp(time.Unix(from, 0)), timestamp(first))
			from = begin
		}
		err = c.compare(ctx, from, before.Unix()-1)
		c.log.reset()
		from = max(from, before.Unix())
		return err
	})
	c.noteIf(malformed > 0, "%d malformed lines of the log were skipped", malformed)
	if err == nil {
		c.noteDeduplication(ctx)
	}
	return c.finish(err)
}

// compare compares the seconds in [from, to]. If a response is too large, compare divides the range.
func (c *comparison) compare(ctx context.Context, from, to int64) error {
	if from > to {
		return nil
	}
	return bisect(from, to, func(from, to int64) error {
		all, err := c.samples(ctx, c.selector, from, to)
		if err != nil {
			return err
		}
		for warning := range c.warnings {
			if c.sink != nil { // the database may have samples that the response lacks
				return fmt.Errorf("nothing is written because the server warns: %s", warning)
			}
		}
		part := &chunk{comparison: c, from: from, to: to, seconds: map[int64]*second{}}
		if err := part.add(all); err != nil {
			return err
		}
		return part.compare(ctx)
	})
}

// noteIf adds a note to the report if the condition is true.
func (c *comparison) noteIf(condition bool, format string, args ...any) {
	if condition {
		c.report.Notes = append(c.report.Notes, fmt.Sprintf(format, args...))
	}
}

// finish returns the complete report. Err is the error that ended the comparison, if any.
func (c *comparison) finish(err error) (Report, error) {
	findings, metrics, resources := []Finding{}, map[string]bool{}, map[string]bool{}
	// A metric or a resource that the database does not have at all is noted once, not as missing in each second.
	for _, s := range c.log.series {
		switch {
		case s.found != nil:
			findings = append(findings, *s.found)
		case !slices.Contains(c.metrics, s.metric):
			metrics[s.metric] = true
		case !c.includes(s):
			resources[s.resource] = true
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Metric, b.Metric))
	})
	const excluded = "the database does not have %v of the instance; excluded; check that the scraper requests them"
	c.noteIf(len(metrics) > 0, excluded, strings.Join(slices.Sorted(maps.Keys(metrics)), ", "))
	c.noteIf(len(resources) > 0, excluded, fmt.Sprintf("%d resources", len(resources)))
	c.noteIf(c.report.Idle > 0, "the database lacks %d samples of idle seconds, which it need not have", c.report.Idle)
	c.noteIf(c.fractions, "samples of the database are not at whole seconds; set honor_timestamps: true")
	c.noteIf(c.duplicates, "the database has several samples of one second; "+
		"VictoriaMetrics needs -dedup.minScrapeInterval=1ms")
	c.noteIf(c.report.ranges > maxRanges, "only the first %d ranges are listed", maxRanges)
	r := c.report
	r.Findings, r.Notes = findings, slices.Clone(r.Notes)
	r.Warnings = slices.AppendSeq([]string{}, maps.Keys(c.warnings))
	slices.Sort(r.Warnings)
	if err != nil {
		err = fmt.Errorf("verify: %w", err)
	}
	return r, err
}
