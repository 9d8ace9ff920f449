// Package replay repeats the calls of access logs in their own time, so that they are counted like those of an
// instrumented service.
//
// Lines are out of order, since servers write them when calls end. The replay sorts them, unless one is later than the
// tolerance. A call passes in the second in which it began and completes in the one in which it ended; the time of its
// line is one or the other, as the format says. Times of whole seconds are spread over their seconds, so that durations
// below a second mean something: the log does not know where in its second such a call began.
//
// [Run] replays logs that end, a [Follower] logs that grow. Both read each line once, and take the lines of all logs in the order
// of their times: the next line is always that of the log that is furthest behind. A line far ahead of those around it is an
// outlier, and not counted. A log that goes back by more than the tolerance, as several put together in the wrong order do, or a
// clock that is set back, has late lines, which are not counted, but reported for each log.
package replay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Run replays the logs and calls f for each second with calls, in order. The Report counts what was read even if there is an
// error: f's, or that of a file that could not be read to its end.
func Run(ctx context.Context, o Options, f func(*Second) error) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := Await(ctx, func() (*run, error) {
		r, err := newRun(o)
		if err == nil {
			err = r.inspect(ctx.Done())
		}
		return r, err
	})
	if err != nil {
		return new(Report), err
	}
	r.player = &player{counter: &rows{names: r.names, each: f}}
	err = r.play(ctx)
	return r.report(), errors.Join(append(r.errs, err)...)
}

// play reads all logs to their ends.
func (r *run) play(ctx context.Context) error {
	for {
		l, err := r.advance()
		if err != nil {
			return err
		}
		if l == nil {
			return r.finish()
		}
		if _, err := r.fill(l); err != nil {
			r.errs = append(r.errs, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// run is a timeline, into which the lines of logs are put.
type run struct {
	Options

	mu sync.Mutex // guards what follows
	Report
	behind  []*Behind
	waiting []*log // they begin later than the others, the earliest first
	logs    []*log // that are read
	names   *names
	window  *window
	player  *player
	spread  spread
	present int64 // with the tolerance, Unix nanoseconds
	after   int64 // Unix time of the last second that the previous process counted, 0 if there was none

	open func(*log) error // of Run: opens a log that was inspected
	errs []error
	size int64
	read atomic.Int64
}

func newRun(o Options) (*run, error) {
	names, err := newNames(&o)
	return &run{Options: o, names: names, window: newWindow(int64(o.Tolerance / time.Second))}, err
}

// inspect inspects all logs. What cannot be opened again stays open.
func (r *run) inspect(done <-chan struct{}) error {
	var errs []error
	var logs []*log
	known := true
	r.Timed = true
	r.open = func(l *log) error {
		f, err := open(l.name, r.Stdin, &r.read)
		if err == nil {
			l.input = newStream(done, f, true)
		}
		return err
	}
	for _, name := range r.Files {
		f, err := open(name, r.Stdin, new(atomic.Int64))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l := r.newLog(name)
		if err := l.inspect(f, sampleLines, r.Zone); err != nil {
			errs = append(errs, err, f.close())
			continue
		}
		known = known && f.size > 0
		r.size += f.size
		r.note(l.doubt)
		switch {
		case f.again:
			errs = append(errs, f.close())
		case l.format != nil:
			l.input = newStream(done, f, true)
		}
		if l.format != nil {
			logs = append(logs, l)
			r.Timed = r.Timed && l.timed
		}
	}
	r.Timed = r.Timed && len(logs) > 0
	if !known {
		r.size = 0
	}
	r.later(logs)
	return errors.Join(errs...)
}

func (r *run) newLog(name string) *log {
	return &log{name: name, format: r.Format, count: &Behind{Log: name}}
}

// note says what may be wrong with a log.
func (r *run) note(doubt string) {
	if doubt != "" && r.Note != nil {
		r.Note(doubt)
	}
}

// take puts a line into the window.
func (r *run) take(l *log, it *item) error {
	second := floorDiv(it.stamp)
	if r.window.from == 0 { // it is the first line
		r.window.from = max(second-int64(r.Tolerance/time.Second), 1)
		r.window.to = r.window.from
	}
	c := r.call(it)
	if r.after != 0 && r.counted(&c) {
		r.Lines--
		l.count.Lines--
		return nil
	}
	if second < r.window.from && !c.passed || c.at+max(c.duration, 0) < r.window.from*nanos {
		r.late(l)
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
func (r *run) call(it *item) call {
	c := call{at: it.stamp, duration: it.duration, name: it.name, n: 1, status: it.status}
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

// finish ends all seconds, after the last line.
func (r *run) finish() error {
	if err := r.window.end(r.window.to, r.player.second); err != nil {
		return err
	}
	return r.player.finish()
}
