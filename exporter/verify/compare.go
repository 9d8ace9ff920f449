package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// ErrSeveral is the error for labels that do not select one instance: the database has several series of one resource, or series
// with other labels beside them.
var ErrSeveral = errors.New("the labels do not select one instance")

// comparison compares the log with a database, part by part.
type comparison struct {
	*client
	gap      Gap
	options  Options
	runs     *runs.File // of the log
	selector string
	metrics  map[string]bool // that are compared
	left     map[string]bool // those that would have been, but are not in the database
	found    bool            // the database has series of the instance

	resources map[string]bool // that are compared; nil for all
	unknown   map[string]bool // those that would have been, but are not in the database
	whose     *owners         // nil until something is missing
	partSize  int
	report    Report
	findings  findings
	between   bool         // some samples are not at a whole second
	again     bool         // some seconds are stored several times
	heal      seconds.Sink // gets what is missing; nil for nobody
}

// part compares the seconds from and to, Unix times, and those between.
func (c *comparison) part(ctx context.Context, log *expected, from, to int64) error {
	if from > to {
		return nil
	}
	return divided(from, to, func(from, to int64) error {
		series, err := c.samples(ctx, c.selector, from, to)
		if err != nil {
			return err
		}
		for warning := range c.warned {
			if c.heal != nil { // what is not in the response may be in the database
				return fmt.Errorf("nothing is written while the server warns: %s", warning)
			}
		}
		database, err := c.sort(series, log.runs.metric)
		if err != nil {
			return err
		}
		return c.compare(ctx, log, database, from, to)
	})
}

// held is what the database has of a part.
type held struct {
	points map[key][]point // of what is compared
	any    map[int64]bool  // the seconds of which it has anything but the run
	runs   map[int64]int64 // by second
}

// sort sorts the points by series. It is an error if they are of several instances.
func (c *comparison) sort(series []stored, run string) (all held, err error) {
	all = held{map[key][]point{}, map[int64]bool{}, map[int64]int64{}}
	var first map[string]string
	for _, s := range series {
		if len(s.Values) == 0 {
			continue
		}
		if first == nil {
			first = s.Metric
			c.report.Labels = instanceLabels(first)
		}
		if names := differing(first, s.Metric); len(names) > 0 {
			return all, severalError(names, first, s.Metric)
		}
		k := key{s.Metric["resource"], s.Metric["__name__"]}
		for _, p := range s.Values {
			if k.metric == run {
				all.runs[p.at/1000] = int64(p.value)
			} else {
				all.any[p.at/1000] = true
			}
		}
		if k.metric != run && (c.gap.Match == nil || c.gap.Match(k.resource)) {
			all.points[k] = append(all.points[k], s.Values...)
		}
	}
	return all, nil
}

// instanceLabels are the labels of a series without those that differ within an instance.
func instanceLabels(series map[string]string) map[string]string {
	labels := maps.Clone(series)
	delete(labels, "__name__")
	delete(labels, "resource")
	return labels
}

// differing returns the names of the labels of an instance that are not the same in two series.
func differing(a, b map[string]string) (names []string) {
	for _, labels := range []map[string]string{a, b} {
		for name := range labels {
			if name != "__name__" && name != "resource" && a[name] != b[name] && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func severalError(names []string, a, b map[string]string) error {
	var both []string
	for _, name := range names {
		both = append(both, fmt.Sprintf("%s is %q and %q", name, a[name], b[name]))
	}
	return fmt.Errorf("%w: %s", ErrSeveral, oneLine(strings.Join(both, ", "), nil))
}

// state is what a second of a part is.
type state struct {
	logged, missing, different, extra bool
	hole                              bool // some of what is missing may be written
}

// states are the seconds of a part of which the log or the database has anything that is compared.
type states map[int64]*state

func (s states) of(unix int64) *state {
	if s[unix] == nil {
		s[unix] = new(state)
	}
	return s[unix]
}

// compare compares all series of a part.
func (c *comparison) compare(ctx context.Context, log *expected, database held, from, to int64) (err error) {
	all, verdicts := states{}, map[int64]verdict{}
	for _, s := range log.series {
		for _, x := range s.samples {
			if from <= x.unix && x.unix <= to {
				all.of(x.unix).logged = true
			}
		}
	}
	known := c.runs.First()
	another := func(p point) bool { // the labels have a run there that the log does not have, which knows its runs
		at := p.at / 1000
		id, theirs := c.runs.ID(at), database.runs[at]
		return theirs != 0 && theirs != id && (id != 0 || known != 0 && at >= known && all[at] == nil)
	}
	for k, points := range database.points {
		database.points[k] = slices.DeleteFunc(points, another)
	}
	judge := func(unix int64) (v verdict) {
		v, ok := verdicts[unix]
		if !ok && err == nil {
			if c.whose == nil {
				c.whose, err = c.owners(ctx)
			}
			if err == nil {
				v = c.whose.judge(unix, c.runs.ID(unix), database.runs[unix])
			}
			verdicts[unix] = v
		}
		return v
	}
	for _, s := range log.series {
		first, _ := slices.BinarySearchFunc(s.samples, from, func(x sample, at int64) int { return cmp.Compare(x.unix, at) })
		end, _ := slices.BinarySearchFunc(s.samples, to+1, func(x sample, at int64) int { return cmp.Compare(x.unix, at) })
		samples := s.samples[first:end]
		switch {
		case len(samples) == 0:
		case !c.metrics[s.metric]:
			c.left[s.metric] = true
		case c.resources != nil && !c.resources[s.resource]:
			c.unknown[s.resource] = true
		default:
			lacks := c.match(s.key, samples, database.points[s.key], all)
			delete(database.points, s.key)
			c.lacking(log, s, samples, lacks, database.any, judge, all)
		}
	}
	if err != nil {
		return err
	}
	for k, points := range database.points { // of series that the log does not have
		c.match(k, nil, points, all)
	}
	for _, unix := range slices.Sorted(maps.Keys(all)) {
		if all[unix].logged {
			c.report.judged(unix, verdicts[unix])
		}
	}
	c.healRuns(log, all, database.runs)
	count := func(n *int64, is bool) {
		if is {
			*n++
		}
	}
	for _, x := range all {
		count(&c.report.Seconds, x.logged)
		count(&c.report.Missing, x.missing)
		count(&c.report.holes, x.hole)
		count(&c.report.Different, x.different)
		count(&c.report.Extra, x.extra)
	}
	return nil
}

// match compares the values of a series, both sides in order of time, and returns which samples the database lacks.
func (c *comparison) match(k key, samples []sample, points []point, all states) (lacks []bool) {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	lacks = make([]bool, len(samples))
	extra := func(p point) {
		if p.value == 0 && p.at%1000 == 0 {
			return // of an idle second
		}
		c.between = c.between || p.at%1000 != 0
		c.findings.extra(k, p.at/1000)
		all.of(p.at / 1000).extra = true
	}
	i := 0
	for n, x := range samples {
		for ; i < len(points) && points[i].at < x.unix*1000; i++ {
			extra(points[i])
		}
		if lacks[n] = i == len(points) || points[i].at != x.unix*1000; lacks[n] {
			continue
		}
		if v := points[i].value; v != x.value {
			c.findings.different(k, x.unix, x.value, v)
			all.of(x.unix).different = true
		}
		for i++; i < len(points) && points[i].at == x.unix*1000; i++ {
			c.again = true
			c.findings.extra(k, x.unix)
			all.of(x.unix).extra = true
		}
	}
	for ; i < len(points); i++ {
		extra(points[i])
	}
	c.report.Samples += int64(len(samples))
	return lacks
}

// lacking decides which of the samples that the database lacks are missing: not the zeros of idle seconds that it need not have.
func (c *comparison) lacking(log *expected, s *logged, samples []sample, lacks []bool, has map[int64]bool, judge func(int64) verdict, all states) {
	active := log.active[s.resource]
	told := false // the series is known to the sink
	for i := 0; i < len(samples); {
		end := i // of the samples that are lacking
		first, last := -1, -1
		for ; end < len(samples) && lacks[end]; end++ {
			if active[samples[end].unix] {
				if first < 0 {
					first = end
				}
				last = end
			}
		}
		for ; i < end; i++ {
			unix := samples[i].unix
			if (i < first || i > last) && has[unix] {
				c.report.Idle++
				c.findings.stored(s.key)
				continue
			}
			v := judge(unix)
			if !v.missing {
				c.findings.stored(s.key)
				continue
			}
			c.findings.missing(s.key, unix)
			all.of(unix).missing = true
			if v != hole {
				continue
			}
			all.of(unix).hole = true
			if c.heal != nil {
				if !told {
					c.heal.Series(s.family, s.names, s.values)
					told = true
				}
				c.heal.Value(unix, samples[i].value)
			}
		}
		if i < len(samples) {
			c.findings.stored(s.key)
			i++
		}
	}
}

// healRuns gives the sink the run of each second of which something was written, unless the database has it.
func (c *comparison) healRuns(log *expected, all states, has map[int64]int64) {
	told := false
	for _, x := range log.runs.samples {
		if second := all[x.unix]; c.heal == nil || second == nil || !second.hole || has[x.unix] != 0 {
			continue
		}
		if !told {
			c.heal.Series(log.runs.family, nil, nil)
			told = true
		}
		c.heal.Value(x.unix, x.value)
	}
}
