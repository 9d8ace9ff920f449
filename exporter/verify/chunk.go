package verify

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// chunk compares some consecutive seconds of the log with the same seconds of the database. Call add once with the
// samples of the database, then compare.
type chunk struct {
	*comparison
	from, to int64             // first and last second
	seconds  map[int64]*second // seconds that the log or the database has

	// err is set if the runs of the database cannot be read. Then nothing is decided, written or counted as missing.
	err error
	// current is the series of the last written sample. A Sink gets the labels of a series once, before its samples.
	current *series
}

// second describes one second of a chunk.
type second struct {
	logged   bool     // the log has samples
	stored   bool     // the database has samples other than the run
	run      int64    // run in the database; 0 for none
	decision decision // the zero value if the database lacks no sample that needs a decision

	different, extra bool // at least one sample is
}

// at returns a second of the chunk, and adds it if it is new.
func (c *chunk) at(unix int64) *second {
	if c.seconds[unix] == nil {
		c.seconds[unix] = new(second)
	}
	return c.seconds[unix]
}

// add adds the samples of the database to their series and seconds. It returns [ErrSeveralInstances] if they belong to
// several instances.
func (c *chunk) add(all []stored) error {
	all = slices.DeleteFunc(all, func(s stored) bool { return len(s.points) == 0 })
	for i, s := range all {
		if i == 0 {
			c.report.Labels = s.labels
		} else if !maps.Equal(c.report.Labels, s.labels) {
			return severalError(c.report.Labels, s.labels)
		}
		isRun := s.metric == c.log.runs.metric
		for _, p := range s.points {
			if isRun {
				c.at(p.at / 1000).run = int64(p.value)
			} else {
				c.at(p.at / 1000).stored = true
			}
		}
		if !isRun && (c.gap.Match == nil || c.gap.Match(s.resource)) {
			to := c.log.get(s.key)
			to.points = append(to.points, s.points...)
		}
	}
	return nil
}

// compare compares all series of the chunk, writes the missing samples that may be written, and adds the seconds to the
// report.
func (c *chunk) compare(ctx context.Context) error {
	// Mark all seconds of the log before comparing the first series: isForeign needs to know whether the log has any
	// resource in a second.
	for _, s := range c.log.series {
		for _, x := range s.between(c.from, c.to) {
			c.at(x.unix).logged = true
		}
	}
	for _, s := range c.log.series {
		samples := s.between(c.from, c.to)
		if !c.includes(s) {
			samples = nil
		}
		c.compareSeries(ctx, s, samples)
	}
	// Write the run together with the first samples of a second: the next check needs it to find the labels of the
	// second. If the database has some samples of the second, it has the run already.
	for _, x := range c.log.runs.between(c.from, c.to) {
		if s := c.at(x.unix); s.decision.verdict == verdictWrite && s.run == 0 {
			c.write(&c.log.runs, x)
		}
	}
	c.count()
	return c.err
}

// isForeign reports whether a point of the database belongs to another run than the second of the log. If the database
// has no run in the second, the point is not foreign. If the log has no run in the second, the point is foreign only if
// the log has an earlier run and no samples of the second.
func (c *chunk) isForeign(p point) bool {
	unix := p.at / 1000
	logged, stored := c.runs.ID(unix), c.at(unix).run
	latest, _ := c.runs.At(unix) // may have ended before
	return stored != 0 && stored != logged && (logged != 0 || latest.ID != 0 && !c.at(unix).logged)
}

// compareSeries compares the samples of the log with the points of the database, both in order of time. It merges the
// two lists: a sample without a point is lacking, a point without a sample may be extra, and a pair may be different.
func (c *chunk) compareSeries(ctx context.Context, s *series, samples []sample) {
	// A database may return the points of a series in several pieces, and several points of one time. The first of
	// these is compared; the others are extra.
	points := slices.DeleteFunc(s.points, c.isForeign)
	s.points = nil
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	var lacking []sample // after the last sample that the database has
	for _, x := range samples {
		for len(points) > 0 && points[0].at < x.unix*1000 {
			c.addPoint(s, points[0])
			points = points[1:]
		}
		if len(points) == 0 || points[0].at > x.unix*1000 {
			lacking = append(lacking, x)
			continue
		}
		// The database has this sample. Decide about the lacking samples before it as one group.
		c.addLacking(ctx, s, lacking)
		lacking, s.lastCompared = lacking[:0], x.unix
		if v := points[0].value; v != x.value {
			f := s.finding()
			if f.Different++; len(f.Values) < maxValues {
				f.Values = append(f.Values, Difference{time.Unix(x.unix, 0).UTC(), x.value, Value(v)})
			}
			c.at(x.unix).different = true
		}
		for points = points[1:]; len(points) > 0 && points[0].at == x.unix*1000; points = points[1:] {
			c.duplicates = true
			c.addExtra(s, x.unix)
		}
	}
	for _, p := range points {
		c.addPoint(s, p)
	}
	c.report.Samples += int64(len(samples))
	c.addLacking(ctx, s, lacking)
}

// addPoint reports a point of the database that has no sample in the log. The zero of an idle second is correct and is
// not reported.
func (c *chunk) addPoint(s *series, p point) {
	if p.value == 0 && p.at%1000 == 0 {
		return
	}
	c.fractions = c.fractions || p.at%1000 != 0
	c.addExtra(s, p.at/1000)
}

// addExtra reports an extra sample of a series.
func (c *chunk) addExtra(s *series, unix int64) {
	c.report.extend(&s.finding().Extra, unix-1, unix)
	c.at(unix).extra = true
}

// addLacking reports the missing samples among consecutive samples that the database lacks, and writes a sample if its
// second may be written.
//
// An example of one series: e is a second with events, 0 an idle second, and all of them are lacking.
//
//	0 0 e 0 0 e 0
//	    |-----|    missing
//	|-|         |  missing only if the database lacks the second of all resources
//
// Between two seconds with events the resource existed and was idle, so the database must have its zeros. Before the
// first and after the last second with events, it is unknown whether a scraper requested the resource. There a zero is
// missing only if the database lacks the second of all resources.
func (c *chunk) addLacking(ctx context.Context, s *series, samples []sample) {
	active := c.log.active[s.resource]
	first, last := len(samples), -1 // with events
	for i, x := range samples {
		if active[x.unix] {
			first, last = min(first, i), i
		}
	}
	for i, x := range samples {
		at := c.at(x.unix)
		if (i < first || i > last) && at.stored {
			c.report.Idle++
		} else if verdict := c.decide(ctx, x.unix, at); verdict.missing() {
			c.report.extend(&s.finding().Missing, s.lastCompared, x.unix)
			if verdict == verdictWrite {
				c.write(s, x)
			}
		}
		s.lastCompared = x.unix
	}
}

// decide returns the verdict about a second that the database lacks, in part or entirely. The first call reads the runs
// of the database. This takes several queries over a day before and after the range, so a comparison without a missing
// sample skips it.
func (c *chunk) decide(ctx context.Context, unix int64, at *second) verdict {
	// After an error the comparison continues to count other differences, and compare returns the error.
	if c.ownership == nil && c.err == nil {
		c.ownership, c.err = c.newOwnership(ctx)
	}
	if at.decision == (decision{}) && c.err == nil {
		at.decision = c.ownership.decide(unix, c.runs.ID(unix), at.run)
	}
	return at.decision.verdict
}

// write sends a sample to the sink, if there is a sink.
func (c *chunk) write(s *series, x sample) {
	if c.sink == nil {
		return
	}
	if c.current != s {
		c.sink.Series(s.family, s.names, s.values)
		c.current = s
	}
	c.sink.Value(x.unix, x.value)
}

// count adds the seconds of the chunk to the report.
func (c *chunk) count() {
	count := func(n *int64, is bool) {
		if is {
			*n++
		}
	}
	// In order, because addDecision joins consecutive seconds.
	for _, unix := range slices.Sorted(maps.Keys(c.seconds)) {
		s := c.seconds[unix]
		if s.logged {
			c.report.addDecision(unix, s.decision)
		}
		count(&c.report.Seconds, s.logged)
		count(&c.report.Missing, s.decision.verdict.missing())
		count(&c.report.writable, s.decision.verdict == verdictWrite)
		count(&c.report.Different, s.different)
		count(&c.report.Extra, s.extra)
	}
}
