package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

const (
	around   = 24 * 60 * 60 // seconds on both sides of a gap in which runs are looked for
	runsPart = 6 * 60 * 60  // seconds of them that are asked for at a time
)

// owners asks the database which labels have the runs of the gap, beside those of the instance.
func (c *comparison) owners(ctx context.Context) (*owners, error) {
	o := &owners{labels: c.report.Labels, by: map[int64]bool{}, has: map[int64]*run{}}
	for _, id := range c.options.Runs {
		o.by[id] = true
	}
	from, to := c.gap.From.Unix(), c.gap.To.Unix()
	begin, end := from, to
	for at := from; at <= to; {
		r, until := c.runs.At(at)
		if c.runs.ID(at) != 0 {
			o.has[r.ID] = newRun(r, c.runs, until)
			begin, end = min(begin, r.First), max(end, cmp.Or(r.Last, time.Now().Unix()))
		}
		at = until
	}
	o.since, end = max(begin, from-around), min(end, to+around)
	for at := o.since; at <= end && len(o.has) > 0; at += runsPart {
		err := divided(at, min(at+runsPart-1, end), func(from, to int64) error { return c.findRuns(ctx, o, from, to) })
		if err != nil {
			return nil, fmt.Errorf("whose seconds these are cannot be found out: %v", err) // a smaller part does not help
		}
	}
	for _, r := range o.has {
		for _, list := range r.held {
			slices.Sort(list)
		}
	}
	o.findReplicas()
	return o, nil
}

// newRun returns a run of the file, until another one begins.
func newRun(of runs.Run, file *runs.File, until int64) *run {
	const history = int64(collector.DefaultHistory / time.Second) // of a file that does not say
	r := &run{Run: of, held: map[string][]int64{}}
	r.History = cmp.Or(r.History, history)
	if next, _ := file.At(until); next.First == until {
		r.handed = until - cmp.Or(next.History, history)
	}
	return r
}

// findRuns finds who has the runs in a part.
func (c *comparison) findRuns(ctx context.Context, o *owners, from, to int64) error {
	metric := table.Run(c.gap.namespace()).Name
	ids := slices.Sorted(maps.Keys(o.has))
	// Most of a fleet cannot have them: they are between the first and the last.
	window := fmt.Sprintf("(%s[%dms])", metric, (to-from)*1000+999)
	candidates, err := c.vector(ctx, fmt.Sprintf("last_over_time%s and max_over_time%s >= %d and min_over_time%s <= %d", window, window, ids[0], window, ids[len(ids)-1]), to)
	if err != nil {
		return err
	}
	for _, candidate := range candidates {
		series, err := c.samples(ctx, selector([]string{metric}, candidate.labels), from, to)
		if err != nil {
			return err
		}
		name := difference(o.labels, candidate.labels)
		for _, s := range series {
			if !maps.Equal(s.labels, candidate.labels) {
				continue
			}
			for _, p := range s.points {
				if r := o.has[int64(p.value)]; r != nil {
					r.held[name] = append(r.held[name], p.at/1000)
				}
			}
		}
	}
	return nil
}
