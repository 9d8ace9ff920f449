package verify

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// part is some consecutive seconds of the log beside what the database has of them.
type part struct {
	*comparison
	from, to int64             // the first and the last second
	seconds  map[int64]*second // those of which the log or the database has anything
	err      error             // of the database: whose seconds these are is not known
	written  *series           // to which the last sample was written
}

// second is what a part has of a second.
type second struct {
	logged  bool    // the log has samples of it
	stored  bool    // the database has any sample of it but the run
	run     int64   // of the database; 0 for none
	verdict verdict // about samples that the database lacks; the zero value if nobody had to ask

	different, extra bool // some sample is
}

func (p *part) at(unix int64) *second {
	if p.seconds[unix] == nil {
		p.seconds[unix] = new(second)
	}
	return p.seconds[unix]
}

// sort sorts what the database has by series and by second. It is an error if it is of several instances.
func (p *part) sort(all []stored) error {
	all = slices.DeleteFunc(all, func(s stored) bool { return len(s.points) == 0 })
	for i, s := range all {
		if i == 0 {
			p.report.Labels = s.labels
		} else if !maps.Equal(p.report.Labels, s.labels) {
			return severalError(p.report.Labels, s.labels)
		}
		for _, x := range s.points {
			if s.metric == p.log.runs.metric {
				p.at(x.at / 1000).run = int64(x.value)
			} else {
				p.at(x.at / 1000).stored = true
			}
		}
		if s.metric != p.log.runs.metric && (p.gap.Match == nil || p.gap.Match(s.resource)) {
			to := p.log.of(s.key)
			to.points = append(to.points, s.points...)
		}
	}
	return nil
}

// compare compares all series of the part.
func (p *part) compare(ctx context.Context) error {
	// All seconds of the log are marked before any series is matched: whether a point is another instance's depends on whether the log has
	// anything of its second, of whatever resource.
	for _, s := range p.log.series {
		for _, x := range s.between(p.from, p.to) {
			p.at(x.unix).logged = true
		}
	}
	for _, s := range p.log.series {
		samples := s.between(p.from, p.to)
		if !p.compares(s) {
			samples = nil
		}
		p.match(ctx, s, samples)
	}
	// The run is written with the first samples of a second, so that the next check knows whose they are. A second of which the database
	// has some samples has its run already.
	for _, x := range p.log.runs.between(p.from, p.to) {
		if second := p.at(x.unix); second.verdict == hole && second.run == 0 {
			p.write(&p.log.runs, x)
		}
	}
	p.count()
	return p.err
}

// another reports whether the labels have a run in the second of a point that the log does not have, which knows its runs.
func (p *part) another(x point) bool {
	unix := x.at / 1000
	id, theirs := p.runs.ID(unix), p.at(unix).run
	run, _ := p.runs.At(unix) // which may have ended before
	return theirs != 0 && theirs != id && (id != 0 || run.ID != 0 && !p.at(unix).logged)
}

// match compares a series, both sides in order of time, and writes what may be written.
func (p *part) match(ctx context.Context, s *series, samples []sample) {
	// A database may return the points of a series in several pieces, and several points of one time.
	points := slices.DeleteFunc(s.points, p.another)
	s.points = nil
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	var lacks []sample // since the last one that the database has
	for _, x := range samples {
		for len(points) > 0 && points[0].at < x.unix*1000 {
			p.tooMuch(s, points[0])
			points = points[1:]
		}
		if len(points) == 0 || points[0].at > x.unix*1000 {
			lacks = append(lacks, x)
			continue
		}
		p.lacking(ctx, s, lacks)
		lacks, s.compared = lacks[:0], x.unix
		if v := points[0].value; v != x.value {
			f := s.wrong()
			if f.Different++; len(f.Values) < maxValues {
				f.Values = append(f.Values, Difference{time.Unix(x.unix, 0).UTC(), x.value, Value(v)})
			}
			p.at(x.unix).different = true
		}
		for points = points[1:]; len(points) > 0 && points[0].at == x.unix*1000; points = points[1:] {
			p.again = true
			p.extra(s, x.unix)
		}
	}
	for _, x := range points {
		p.tooMuch(s, x)
	}
	p.report.Samples += int64(len(samples))
	p.lacking(ctx, s, lacks)
}

// tooMuch notes a point at a time of which the log has no sample: nothing is wrong with the zero of an idle second.
func (p *part) tooMuch(s *series, x point) {
	if x.value == 0 && x.at%1000 == 0 {
		return
	}
	p.between = p.between || x.at%1000 != 0
	p.extra(s, x.at/1000)
}

func (p *part) extra(s *series, unix int64) {
	p.report.add(&s.wrong().Extra, unix-1, unix)
	p.at(unix).extra = true
}

// lacking decides which of the samples that the database lacks, one after the other, are missing: not the zeros of idle seconds that it
// need not have. It writes those that may be written.
func (p *part) lacking(ctx context.Context, s *series, samples []sample) {
	// Between two seconds with events the resource was there and idle, and its zeros belong into the database as well. Before the first and
	// behind the last one nobody knows whether it was asked for.
	active := p.log.active[s.resource]
	first, last := len(samples), -1 // with events
	for i, x := range samples {
		if active[x.unix] {
			first, last = min(first, i), i
		}
	}
	for i, x := range samples {
		at := p.at(x.unix)
		switch {
		case (i < first || i > last) && at.stored:
			p.report.Idle++
		case p.judge(ctx, x.unix, at).missing:
			p.report.add(&s.wrong().Missing, s.compared, x.unix)
			if at.verdict == hole {
				p.write(s, x)
			}
		}
		s.compared = x.unix
	}
}

// judge decides what a second is of which the database lacks samples.
func (p *part) judge(ctx context.Context, unix int64, at *second) verdict {
	// Whose seconds these are takes several queries over a day on both sides, so nobody asks before something is missing.
	if p.whose == nil && p.err == nil {
		p.whose, p.err = p.owners(ctx)
	}
	if at.verdict == (verdict{}) && p.err == nil {
		at.verdict = p.whose.judge(unix, p.runs.ID(unix), at.run)
	}
	return at.verdict
}

// write gives a sample to the sink, if there is one.
func (p *part) write(s *series, x sample) {
	if p.heal == nil {
		return
	}
	if p.written != s {
		p.heal.Series(s.family, s.names, s.values)
		p.written = s
	}
	p.heal.Value(x.unix, x.value)
}

// count adds the part to the report.
func (p *part) count() {
	count := func(n *int64, is bool) {
		if is {
			*n++
		}
	}
	for _, unix := range slices.Sorted(maps.Keys(p.seconds)) {
		x := p.seconds[unix]
		if x.logged {
			p.report.judged(unix, x.verdict)
		}
		count(&p.report.Seconds, x.logged)
		count(&p.report.Missing, x.verdict.missing)
		count(&p.report.holes, x.verdict == hole)
		count(&p.report.Different, x.different)
		count(&p.report.Extra, x.extra)
	}
}
