package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

const (
	// searchMargin is the number of seconds before and after the compared range that are searched for runs. A run may
	// be longer; row 13 of the table of decisions covers its seconds before the search.
	searchMargin = 24 * 60 * 60
	// runsPerQuery is the number of seconds of the run metric that one query reads. The metric has one sample per
	// second and instance.
	runsPerQuery = 6 * 60 * 60
)

// run is a run of the log, with the seconds of it that the database has.
type run struct {
	runs.Run
	// forwardedFrom is the first second that a later process may have forwarded from the log. A later process may
	// forward seconds from its first second minus its history on, and forwardedFrom is the minimum over all later
	// processes. For example, a process with a history of 600 seconds that starts at 10:00:00 may forward the log from
	// 09:50:00 on. Without a later process, forwardedFrom is after all seconds. If the history of a later process is
	// unknown, it is before all seconds.
	forwardedFrom int64

	own    []int64            // seconds that the labels of the instance have, ascending
	others map[string][]int64 // the same for other labels, by their difference to the labels of the instance
}

// newRun returns a run of the log that the database does not have. The file is needed for the runs of later processes.
func newRun(r runs.Run, file *runs.File) *run {
	x := &run{Run: r, others: map[string][]int64{}, forwardedFrom: math.MaxInt64}
	for _, later := range file.After(r.First) {
		if later.History == 0 {
			x.forwardedFrom = math.MinInt64
			break
		}
		x.forwardedFrom = min(x.forwardedFrom, later.First-later.History)
	}
	return x
}

// add adds a second that labels have. Name is their difference to the labels of the instance, empty for the instance.
func (r *run) add(name string, unix int64) {
	if name == "" {
		r.own = append(r.own, unix)
	} else {
		r.others[name] = append(r.others[name], unix)
	}
}

// newOwnership reads from the database the labels that have the runs of the gap. It reads the runs from their first to
// their last second, but at most a day before and after the gap.
func (c *comparison) newOwnership(ctx context.Context) (*ownership, error) {
	o := &ownership{labels: c.report.Labels, chosen: c.options.Runs, runs: map[int64]*run{}}
	// Search from the first to the last second of all runs that counted seconds of the gap.
	from, to := c.gap.From.Unix(), c.gap.To.Unix()
	begin, end := from, to
	for at := from; at <= to; {
		r, until := c.runs.At(at)
		if c.runs.ID(at) != 0 {
			o.runs[r.ID] = newRun(r, c.runs)
			begin, end = min(begin, r.First), max(end, cmp.Or(r.Last, time.Now().Unix()))
		}
		at = until
	}
	o.searchedFrom, end = max(begin, from-searchMargin), min(end, to+searchMargin)
	for at := o.searchedFrom; at <= end && len(o.runs) > 0; at += runsPerQuery {
		find := func(from, to int64) error { return c.findRuns(ctx, o, from, to) }
		err := bisect(at, min(at+runsPerQuery-1, end), find)
		if err != nil {
			// %v hides errTooLarge: bisecting the comparison as well would not help.
			return nil, fmt.Errorf("cannot read the runs of the database: %v", err)
		}
	}
	for _, r := range o.runs {
		slices.Sort(r.own)
		for _, list := range r.others {
			slices.Sort(list)
		}
	}
	o.findReplicas()
	return o, nil
}

// findRuns queries the seconds in [from, to], and adds to each run the seconds that labels have of it.
func (c *comparison) findRuns(ctx context.Context, o *ownership, from, to int64) error {
	metric := table.Run(c.gap.namespace()).Name
	ids := slices.Sorted(maps.Keys(o.runs))
	// The first query excludes most instances of a fleet: their runs are below the first or above the last ID. Without
	// it, the second query would be needed for each of them.
	values := "(" + metric + rangeSelector(from, to) + ")"
	query := fmt.Sprintf("last_over_time%s and max_over_time%s >= %d and min_over_time%s <= %d",
		values, values, ids[0], values, ids[len(ids)-1])
	candidates, err := c.query(ctx, query, to, "vector")
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
			if !maps.Equal(s.labels, candidate.labels) { // the selector also matches series with more labels
				continue
			}
			for _, p := range s.points {
				if r := o.runs[int64(p.value)]; r != nil {
					r.add(name, p.at/1000)
				}
			}
		}
	}
	return nil
}
