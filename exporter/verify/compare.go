package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// ErrSeveral is the error for labels that do not select one instance: the database has several series of one resource, or series
// with other labels beside them.
var ErrSeveral = errors.New("the labels do not select one instance")

// comparison compares the log with a database, part by part.
type comparison struct {
	*client
	selector string
	metrics  map[string]bool // that are compared
	left     map[string]bool // those that would have been, but are not in the database
	found    bool            // the database has series of the instance

	resources map[string]bool // that are compared; nil for all
	unknown   map[string]bool // those that would have been, but are not in the database
	whose     *owners
	match     func(resource string) bool
	partSize  int
	report    Report
	findings  findings
	between   bool         // some samples are not at a whole second
	again     bool         // some seconds are stored several times
	heal      seconds.Sink // gets what is missing; nil for nobody
}

// part compares the seconds from and to, Unix times, and those between. The server may want them in smaller parts.
func (c *comparison) part(ctx context.Context, log *expected, from, to int64) error {
	if from > to {
		return nil
	}
	series, err := c.samples(ctx, c.selector, from, to)
	if errors.Is(err, errTooMuch) && from < to {
		middle := from + (to-from)/2
		if err := c.part(ctx, log, from, middle); err != nil {
			return err
		}
		return c.part(ctx, log, middle+1, to)
	}
	if err != nil {
		return err
	}
	for warning := range c.warned {
		if c.heal != nil { // what is not in the response may be in the database
			return fmt.Errorf("nothing is written while the server warns: %s", warning)
		}
	}
	database, has, err := c.sort(series)
	if err != nil {
		return err
	}
	c.compare(log, database, has, from, to)
	return nil
}

// sort returns the points of what is compared by series, the seconds in which the instance has any, and an error if they are of
// several instances.
func (c *comparison) sort(series []stored) (all map[key][]point, has map[int64]bool, err error) {
	all, has = map[key][]point{}, map[int64]bool{}
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
			return nil, nil, severalError(names, first, s.Metric)
		}
		for _, p := range s.Values {
			has[p.at/1000] = true
		}
		if k := (key{s.Metric["resource"], s.Metric["__name__"]}); c.match == nil || c.match(k.resource) {
			all[k] = append(all[k], s.Values...)
		}
	}
	return all, has, nil
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

// differences are the seconds of a part in which something is wrong.
type differences struct{ seconds, missing, holes, different, extra map[int64]bool }

// compare compares all series of a part. The database has something of the seconds in has.
func (c *comparison) compare(log *expected, database map[key][]point, has map[int64]bool, from, to int64) {
	d := differences{map[int64]bool{}, map[int64]bool{}, map[int64]bool{}, map[int64]bool{}, map[int64]bool{}}
	verdicts, healed := map[int64]verdict{}, map[int64]bool{}
	judge := func(unix int64) verdict {
		v, ok := verdicts[unix]
		if !ok {
			v = c.whose.judge(unix)
			verdicts[unix] = v
		}
		return v
	}
	another := func(at int64) bool { // the labels have a run there that the log does not have
		theirs := c.whose.own[at]
		return theirs != 0 && theirs != c.whose.runs.ID(at)
	}
	for _, s := range log.series {
		first, _ := slices.BinarySearchFunc(s.samples, from, func(x sample, at int64) int { return cmp.Compare(x.unix, at) })
		end, _ := slices.BinarySearchFunc(s.samples, to+1, func(x sample, at int64) int { return cmp.Compare(x.unix, at) })
		samples := s.samples[first:end]
		if len(samples) == 0 {
			continue
		}
		for _, x := range samples {
			d.seconds[x.unix] = true
		}
		if !c.metrics[s.metric] {
			c.left[s.metric] = true
			continue
		}
		if c.resources != nil && !c.resources[s.resource] {
			c.unknown[s.resource] = true
			continue
		}
		points := slices.DeleteFunc(database[s.key], func(p point) bool { return another(p.at / 1000) })
		lacks := c.values(s.key, samples, points, &d)
		delete(database, s.key)
		c.lacking(log, s, samples, lacks, has, judge, healed, &d)
	}
	c.healRuns(log, healed)
	for _, unix := range slices.Sorted(maps.Keys(verdicts)) {
		if v := verdicts[unix]; v.reason != "" {
			c.report.refuse(unix, v.reason)
		}
	}
	for k, points := range database {
		points = slices.DeleteFunc(points, func(p point) bool { return another(p.at / 1000) })
		c.values(k, nil, points, &d)
	}
	c.report.Seconds += int64(len(d.seconds))
	c.report.Missing += int64(len(d.missing))
	c.report.holes += int64(len(d.holes))
	c.report.Different += int64(len(d.different))
	c.report.Extra += int64(len(d.extra))
}

// values compares the values of a series, both sides in order of time, and returns which samples the database lacks.
func (c *comparison) values(k key, samples []sample, points []point, d *differences) (lacks []bool) {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	lacks = make([]bool, len(samples))
	extra := func(p point) {
		if p.value == 0 && p.at%1000 == 0 {
			return // of an idle second
		}
		c.between = c.between || p.at%1000 != 0
		c.findings.extra(k, p.at/1000)
		d.extra[p.at/1000] = true
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
			d.different[x.unix] = true
		}
		for i++; i < len(points) && points[i].at == x.unix*1000; i++ {
			c.again = true
			c.findings.extra(k, x.unix)
			d.extra[x.unix] = true
		}
	}
	for ; i < len(points); i++ {
		extra(points[i])
	}
	c.report.Samples += int64(len(samples))
	return lacks
}

// lacking decides which of the samples that the database lacks are missing: not the zeros of idle seconds that it need not have.
func (c *comparison) lacking(log *expected, s *logged, samples []sample, lacks []bool, has map[int64]bool, judge func(int64) verdict, healed map[int64]bool, d *differences) {
	active := log.active[s.resource]
	told := false // the series is known to the sink
	for i := 0; i < len(samples); i++ {
		if !lacks[i] {
			c.findings.stored(s.key)
			continue
		}
		first, last, end := -1, -1, i // of the run: its active seconds
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
			if (i < first || i > last || first < 0) && has[unix] {
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
			d.missing[unix] = true
			if v.reason != "" {
				continue
			}
			if d.holes[unix] = true; c.heal != nil {
				healed[unix] = true
				if !told {
					c.heal.Series(s.family, s.names, s.values)
					told = true
				}
				c.heal.Value(unix, samples[i].value)
			}
		}
		i--
	}
}

// healRuns gives the sink the run of each second that it got, unless the database has it.
func (c *comparison) healRuns(log *expected, healed map[int64]bool) {
	told := false
	for _, x := range log.runs.samples {
		if !healed[x.unix] || c.whose.own[x.unix] != 0 {
			continue
		}
		if !told {
			c.heal.Series(log.runs.family, nil, nil)
			told = true
		}
		c.heal.Value(x.unix, x.value)
	}
}
