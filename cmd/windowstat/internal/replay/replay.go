// Package replay repeats the calls of access logs in their own time, so that they are counted like those of an
// instrumented service.
//
// Lines are out of order, since servers write them when calls end. The replay sorts them, unless one is later than the
// tolerance. A call passes in the second in which it began and completes in the one in which it ended; the time of its
// line is one or the other, as the format says. Times of whole seconds are spread over their seconds, so that durations
// below a second mean something: the log does not know where in its second such a call began.
//
// A line far ahead of those around it is an outlier, and not counted. Where a log goes back by more than the tolerance, as one
// put together of several does, it is read in parts, which are merged. A log that is followed has no parts: when a clock was
// set back by more than the tolerance, all lines that follow are late.
package replay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/node"
)

// Report counts lines by what became of them.
type Report struct {
	Lines     int64
	Malformed int64       // not readable
	Late      int64       // later than the tolerance: not counted
	Future    int64       // from the future: not counted
	Outliers  int64       // far ahead of the lines around them: not counted
	Clipped   int64       // of calls that began in a second that had ended: they pass in the first open one
	Unearned  int64       // counted for unmatched, because their name was not earned
	Truncated int64       // how often a log that is followed was truncated: what is written between copy and truncation may be lost
	Cut       int64       // bytes that were seen, and cut off before they were read: not counted
	Evicted   int64       // seconds ended before the tolerance was over, because too many calls were held
	Statuses  [1000]int64 // counted lines by status
	Examples  []Example   // of malformed lines
	Timed     bool        // the logs have durations
	Untold    int64       // of an hour that comes twice, and their order does not tell which of the two it is
}

// Uncounted is how many lines are not counted.
func (r *Report) Uncounted() int64 { return r.Malformed + r.Late + r.Future + r.Outliers }

// Second is one second of the replay. The rows are only valid during the call.
type Second struct {
	Start time.Time // in UTC
	Rows  []Row     // of the resources with calls, or with calls in flight
	Total node.MetricNode
}

// Run replays the logs and calls f for each second with calls, in order. The Report counts what was read even if there is an
// error: f's, or that of a file that could not be read to its end.
func Run(ctx context.Context, o Options, f func(*Second) error) (*Report, error) {
	r := newRun(o)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := Await(ctx, func() (*run, error) { return r, r.inspect() }); err != nil {
		if ctx.Err() != nil {
			return new(Report), err // r may still be in use
		}
		return &r.Report, err
	}
	defer r.closeSpools()
	r.ended = ctx.Done()
	if err := r.makeNames(ctx); err != nil {
		return &r.Report, err
	}
	r.each = f
	err := r.merge(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && r.player != nil {
		err = r.finish()
	}
	return &r.Report, errors.Join(append(r.errs, err)...)
}

// run is a replay.
type run struct {
	Options
	Report
	sources []*source // not started yet, the earliest first
	reading []*source
	ids     map[string]int32 // of names
	names   []string
	earned  *httpstat.Names // nil if names need not be earned
	settled bool            // all names are known: the logs were read once before
	latest  int64           // Unix time of the latest line that a Follower has named: its clock of names
	window  *window
	player  *player // nil until there is a call
	each    func(*Second) error
	errs    []error
	size    int64
	read    atomic.Int64
	spools  []*spool
	present int64 // with the tolerance, Unix nanoseconds
	spread  spread
	ended   <-chan struct{} // closed when the replay is to end; nil for a Follower
	after   int64           // Unix time of the last second that the previous process counted, 0 if there was none
	second  Second
}

func newRun(o Options) *run {
	return &run{Options: o, ids: map[string]int32{}, window: newWindow(int64(o.Tolerance / time.Second))}
}

// finish ends all seconds, after the last line.
func (r *run) finish() error {
	if err := r.window.end(r.window.to, r.player.second); err != nil {
		return err
	}
	return r.player.finish()
}

// inspect inspects all logs.
func (r *run) inspect() error {
	var errs []error
	known := true
	for _, name := range r.Files {
		s, err := inspect(name, r.Stdin, r.Format, r.Zone, &r.read, false)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		known = known && s.size > 0
		r.size += s.size
		r.note(s.doubt)
		if s.format != nil {
			r.sources = append(r.sources, s)
		}
		if s.kept != nil && s.format != nil {
			if err := s.keep(); err != nil {
				errs = append(errs, err)
				continue
			}
			r.spools = append(r.spools, s.spool)
		}
	}
	if !known {
		r.size = 0
	}
	r.Timed = len(r.sources) > 0
	for _, s := range r.sources {
		r.Timed = r.Timed && s.timed
	}
	r.sortSources()
	return errors.Join(errs...)
}

// note says what may be wrong with a log.
func (r *run) note(doubt string) {
	if doubt != "" && r.Note != nil {
		r.Note(doubt)
	}
}

func (r *run) closeSpools() {
	for _, s := range r.spools {
		_ = s.close()
	}
}

func (r *run) sortSources() {
	slices.SortStableFunc(r.sources, func(a, b *source) int { return cmp.Compare(a.first, b.first) })
}

// merge takes the lines of all logs, each time from the log that is furthest behind.
func (r *run) merge(ctx context.Context) error {
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		s := r.behind(ctx)
		if s == nil {
			return nil
		}
		if err := r.take(s, s.head); err != nil {
			return err
		}
		r.advance(s)
	}
}

// behind returns the log that is furthest behind, nil if all have ended. It starts the ones whose time has come.
func (r *run) behind(ctx context.Context) *source {
	for {
		var s *source
		for _, x := range r.reading {
			if s == nil || x.latest < s.latest {
				s = x
			}
		}
		if len(r.sources) == 0 || s != nil && r.sources[0].first > s.latest {
			return s
		}
		s, r.sources = r.sources[0], r.sources[1:]
		s.start(ctx, r)
		r.reading = append(r.reading, s)
		r.advance(s)
	}
}

// advance goes on to the next line of a log.
func (r *run) advance(s *source) {
	if s.advance(r); s.head == nil {
		r.reading = slices.DeleteFunc(r.reading, func(x *source) bool { return x == s })
	}
}

// batch counts what was read, and registers its names.
func (r *run) batch(s *source, b *batch) {
	r.present = time.Now().Add(r.Tolerance).UnixNano()
	r.Lines += b.lines
	r.Malformed += b.malformed
	r.Untold += b.untold
	r.Examples = append(r.Examples, b.examples[:min(len(b.examples), max(0, 10-len(r.Examples)))]...)
	if b.err != nil {
		r.errs = append(r.errs, b.err)
	}
	for _, name := range b.names {
		id, ok := r.ids[name]
		if !ok {
			id = int32(len(r.names))
			r.ids[name] = id
			r.names = append(r.names, name)
		}
		s.ids = append(s.ids, id)
	}
	if r.Progress != nil {
		r.Progress(r.read.Load(), r.size, r.Lines)
	}
}

// take puts a line into the window.
func (r *run) take(s *source, it *item) error {
	second := floorDiv(it.stamp)
	if r.player == nil {
		if err := r.begin(second); err != nil {
			return err
		}
	}
	c := r.call(s, it)
	if r.after != 0 && r.counted(&c) {
		r.Lines--
		return nil
	}
	if second < r.window.from && !c.passed || c.at+max(c.duration, 0) < r.window.from*nanos {
		r.Late++
		return nil
	}
	if err := r.window.end(second-int64(r.Tolerance/time.Second), r.player.second); err != nil {
		return err
	}
	r.Statuses[it.status]++
	if it.unearned {
		r.Unearned++
	}
	if open := r.window.from * nanos; c.at < open {
		c.clipped, c.at = open-c.at, open
		if !c.passed {
			r.Clipped++
		}
	}
	r.window.add(c)
	for r.window.held > maxHeld {
		r.Evicted++
		if err := r.window.end(r.window.from+1, r.player.second); err != nil {
			return err
		}
	}
	return nil
}

// call returns the call of a line. Without a duration it is in the second of its line.
func (r *run) call(s *source, it *item) call {
	c := call{at: it.stamp, duration: it.duration, name: s.ids[it.name], n: 1, status: it.status}
	switch {
	case r.Blocks[it.status]:
		c.outcome = blocked
	case r.Exceptions[it.status]:
		c.outcome = failed
	}
	if c.duration == unknown {
		c.at = floorDiv(it.stamp) * nanos
		return c
	}
	if it.coarse {
		c.at += r.spread.next(floorDiv(it.stamp))
	}
	if it.end {
		c.at -= c.duration
	}
	return c
}

// counted reports whether the previous process counted a call. It marks a call of which that process counted only the
// beginning: the line was there before the second ended, since servers write lines when calls end.
func (r *run) counted(c *call) bool {
	ended := floorDiv(c.at + max(c.duration, 0))
	if ended <= r.after {
		return true
	}
	c.passed = floorDiv(c.at) <= r.after && ended <= r.after+int64(r.Tolerance/time.Second)
	return c.passed && c.outcome == blocked
}

// shortest is the shortest history of a Collector: a second is read when it is over.
const shortest = 2 * time.Second

// begin makes the Collector at the time of the first line.
func (r *run) begin(second int64) error {
	r.window.from = max(second-int64(r.Tolerance/time.Second), 1)
	r.window.to = r.window.from
	clock := &Clock{}
	clock.set(r.window.from * nanos)
	c, err := collector.New(collector.Options{
		Now: clock.Now, Given: r.Given, MaxResources: r.MaxResources, RetireAfter: retireAfter,
		Windows: node.Options{SampleCount: 1, Minute: shortest, History: shortest},
	})
	if err != nil {
		return err
	}
	r.player = newPlayer(c, clock, &r.names, r.window.from)
	r.player.done = r.done
	return nil
}

// done reports a second.
func (r *run) done(start time.Time, active []*collector.Resource, most int64) (err error) {
	x := &r.second
	x.Start = start
	if x.Rows, err = rows(r.player.stats, start, active, x.Rows[:0]); err != nil {
		return err
	}
	x.Total = node.MetricNode{Start: start, InFlight: r.player.inFlight, InFlightMax: most}
	for i := range x.Rows {
		x.Total.Counts = x.Total.Counts.Add(x.Rows[i].Counts)
		x.Total.InFlightTime += x.Rows[i].InFlightTime
	}
	return r.each(x)
}
