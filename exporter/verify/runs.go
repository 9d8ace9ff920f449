package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
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
			o.has[r.ID] = &run{Run: r, others: map[string][]int64{}}
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
		slices.Sort(r.own)
		for _, list := range r.others {
			slices.Sort(list)
		}
	}
	o.findReplicas(int64(collector.DefaultHistory / time.Second))
	return o, nil
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
	var found []stored
	for _, labels := range candidates {
		labels = instanceLabels(labels)
		series, err := c.samples(ctx, selector([]string{metric}, labels), from, to)
		if err != nil {
			return err
		}
		for _, s := range series {
			if maps.Equal(instanceLabels(s.Metric), labels) {
				found = append(found, s)
			}
		}
	}
	for _, s := range found {
		name := difference(o.labels, s.Metric) // empty for those of the instance
		for _, p := range s.Values {
			switch r := o.has[int64(p.value)]; {
			case r == nil:
			case name == "":
				r.own = append(r.own, p.at/1000)
			default:
				r.others[name] = append(r.others[name], p.at/1000)
			}
		}
	}
	return nil
}

// instance returns the labels of the instance. If there are several, it is the one that has the last run of the log.
func (c *comparison) instance(ctx context.Context, series []map[string]string) (map[string]string, error) {
	one := instanceLabels(series[0])
	i := slices.IndexFunc(series, func(x map[string]string) bool { return len(differing(one, x)) > 0 })
	if i < 0 {
		return one, nil
	}
	several := severalError(differing(one, series[i]), one, series[i])
	from, to := c.gap.From.Unix(), c.gap.To.Unix()
	last := c.runs.ID(to)
	if last == 0 {
		return one, several
	}
	run := selector([]string{table.Run(c.gap.namespace()).Name}, c.report.Labels)
	have, err := c.vector(ctx, fmt.Sprintf("last_over_time(%s[%dms]) == %d", run, (to-from)*1000+999, last), to)
	if err != nil || len(have) != 1 {
		return one, cmp.Or(err, several)
	}
	one = instanceLabels(have[0])
	for _, x := range series { // which a selector cannot tell from it
		if matches(one, x) && len(differing(one, x)) > 0 {
			return one, several
		}
	}
	return one, nil
}

// matches reports whether labels have all that are wanted.
func matches(want, labels map[string]string) bool {
	for name, value := range want {
		if labels[name] != value {
			return false
		}
	}
	return true
}
