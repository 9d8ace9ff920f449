package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
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
func (c *comparison) owners(ctx context.Context, gap Gap, by []int64) (*owners, error) {
	file, err := gap.runs()
	if err != nil {
		c.report.Notes = append(c.report.Notes, "the runs of the log are not known: "+oneLine(err.Error(), nil))
		file = new(runs.File)
	}
	own := c.report.Labels
	o := &owners{
		runs: file, by: map[int64]bool{}, own: map[int64]int64{}, has: map[int64]*run{},
		push: func(r runs.Run) bool {
			for _, labels := range r.Labels {
				if len(labels) > 0 && matches(labels, own) {
					return true
				}
			}
			return false
		},
	}
	for _, id := range by {
		o.by[id] = true
	}
	from, to := gap.From.Unix(), gap.To.Unix()
	begin, end := from, to
	for at := from; at <= to; {
		r, until := file.At(at)
		if id := file.ID(at); id != 0 && o.has[id] == nil {
			o.has[id] = &run{Run: r, others: map[string][]int64{}}
			begin = min(begin, r.First)
			if end = max(end, r.Last); r.Last == 0 {
				end = time.Now().Unix()
			}
		}
		at = until
	}
	o.since, end = max(begin, from-around), min(end, to+around)
	metric := table.Run(gap.namespace()).Name
	for at := o.since; at <= end && err == nil; at += runsPart {
		err = c.findRuns(ctx, metric, own, at, min(at+runsPart-1, end), o)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range o.has {
		for _, list := range r.others {
			slices.Sort(list)
		}
		slices.Sort(r.own)
	}
	o.findReplicas(int64(collector.DefaultHistory / time.Second))
	return o, nil
}

// instance returns the labels of the instance. If there are several, it is the one that has the last run of the log.
func (c *comparison) instance(ctx context.Context, gap Gap, series []map[string]string) (map[string]string, error) {
	one := instanceLabels(series[0])
	file, err := gap.runs()
	if err != nil {
		return one, nil // it is said later
	}
	last := file.ID(gap.To.Unix())
	metric := table.Run(gap.namespace()).Name
	var several error
	var have []map[string]string
	seen := map[string]bool{}
	for _, x := range series {
		labels := instanceLabels(x)
		if names := differing(one, labels); len(names) > 0 && several == nil {
			several = severalError(names, one, labels)
		}
		if exactly := selector([]string{metric}, labels); !seen[exactly] && last != 0 {
			seen[exactly] = true
			found, err := c.candidates(ctx, exactly, last, last, gap.From.Unix(), gap.To.Unix())
			if err != nil {
				return one, err
			}
			if slices.ContainsFunc(found, func(s map[string]string) bool { return maps.Equal(instanceLabels(s), labels) }) {
				have = append(have, labels)
			}
		}
	}
	switch {
	case several == nil:
		return one, nil
	case len(have) != 1:
		return one, several
	}
	for _, x := range series { // which a selector cannot tell from it
		if labels := instanceLabels(x); !maps.Equal(labels, have[0]) && matches(have[0], labels) {
			return one, several
		}
	}
	return have[0], nil
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

// findRuns finds who has the runs in a part, which the server may want to be smaller.
func (c *comparison) findRuns(ctx context.Context, metric string, own map[string]string, from, to int64, o *owners) error {
	series := []map[string]string{own}
	err := error(nil)
	if len(o.has) > 0 {
		var more []map[string]string
		more, err = c.candidates(ctx, metric, slices.Min(slices.Collect(maps.Keys(o.has))), slices.Max(slices.Collect(maps.Keys(o.has))), from, to)
		series = append(series, more...)
	}
	for i, labels := range series {
		if err != nil {
			break
		}
		if labels = instanceLabels(labels); i > 0 && maps.Equal(labels, own) {
			continue
		}
		var found []stored
		found, err = c.samples(ctx, selector([]string{metric}, labels), from, to)
		for _, s := range found {
			if !maps.Equal(instanceLabels(s.Metric), labels) {
				continue
			}
			for _, p := range s.Values {
				at, id := p.at/1000, int64(p.value)
				r := o.has[id]
				switch {
				case i > 0 && r != nil:
					name := difference(own, labels)
					r.others[name] = append(r.others[name], at)
				case i == 0:
					if o.own[at] = id; r != nil {
						r.own = append(r.own, at)
					}
				}
			}
		}
	}
	if errors.Is(err, errTooMuch) && from < to {
		for _, r := range o.has { // what was found of this part
			cut := func(list []int64) []int64 {
				return slices.DeleteFunc(list, func(at int64) bool { return at >= from && at <= to })
			}
			r.own = cut(r.own)
			for name, list := range r.others {
				r.others[name] = cut(list)
			}
		}
		middle := from + (to-from)/2
		if err = c.findRuns(ctx, metric, own, from, middle, o); err == nil {
			err = c.findRuns(ctx, metric, own, middle+1, to, o)
		}
	}
	return err
}

// candidates are the labels that may have a run from first to last, as most of a fleet's do not.
func (c *client) candidates(ctx context.Context, metric string, first, last, from, to int64) (list []map[string]string, err error) {
	var data struct {
		Result []struct{ Metric map[string]string }
	}
	window := fmt.Sprintf("(%s[%dms])", metric, (to-from)*1000+999)
	err = c.get(ctx, "query", url.Values{
		"query": {fmt.Sprintf("last_over_time%s and max_over_time%s >= %d and min_over_time%s <= %d", window, window, first, window, last)},
		"time":  {strconv.FormatInt(to, 10)}, "timeout": {c.timeout.String()},
	}, &data)
	for _, x := range data.Result {
		list = append(list, x.Metric)
	}
	return list, err
}
