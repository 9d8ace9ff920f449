package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Follower replays logs as they grow, in one timeline. The time of its Collector is the wall clock less the tolerance and a
// second. It must be made with [NewFollower].
type Follower struct {
	Clock *Clock // for the Collector's options

	run        *run // its lock is held while lines are taken
	opened     opened
	patterns   []string
	matched    time.Time            // when files that match the patterns were last looked for
	unreadable map[string]time.Time // files that match, and since when they have been there
}

// ingestDelay is how long a line may take from the server into the log without being late.
const ingestDelay = time.Second

// NewFollower opens the logs: the options' files, which may be Stdin, and those that match patterns such as *.log. It waits until
// one of them has a line, if no format is given and all are empty, and so is what was rotated away. The Follower skips what the
// logs have now, or, if after is not the zero Time, what is not after that second: so a process goes on where the one before it
// ended. It reads all that is written later, even to files that do not exist yet.
func NewFollower(o Options, after time.Time) (_ *Follower, err error) {
	r, err := newRun(o)
	if err != nil {
		return nil, err
	}
	f := &Follower{Clock: &Clock{}, run: r, unreadable: map[string]time.Time{}}
	begin := time.Now().Add(-o.Tolerance - ingestDelay).Unix()
	if !after.IsZero() {
		r.after = after.Unix()
		begin = r.after + 1
	}
	if err := f.open(after); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.window.from, r.window.to = begin, begin
	f.Clock.set(begin * nanos)
	return f, nil
}

// open decides where reading begins, once and before anything else looks at the logs: what appears between this and Run is new.
func (f *Follower) open(after time.Time) error {
	var errs []error
	f.matched = time.Now()
	names, o := []string(nil), &f.run.Options
	for _, name := range o.Files {
		if _, err := os.Stat(name); err != nil && isPattern(name) {
			f.patterns = append(f.patterns, name)
			continue
		}
		names = append(names, name)
	}
	matches := f.unknown(names)
	if len(names)+len(matches) == 0 && o.Format == nil {
		errs = append(errs, fmt.Errorf("no file matches %q yet; with a format it can be waited for", f.patterns))
	}
	for i, name := range append(names, matches...) {
		errs = append(errs, f.add(name, i >= len(names), after))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return f.tellFormat()
}

// add begins a log at its end, or, if since is not the zero Time, with all that was written since.
func (f *Follower) add(name string, matched bool, since time.Time) error {
	o := &f.run.Options
	l := f.run.newLog(name)
	l.matched = matched
	at, err := os.Stat(name)
	switch {
	case name == "-" || err == nil && !at.Mode().IsRegular():
		pipe, err := open(name, o.Stdin, new(atomic.Int64))
		if err == nil {
			err = l.inspect(pipe, 1, o.Zone)
		}
		if err == nil && l.format == nil && o.Format == nil {
			err = fmt.Errorf("%s has ended without a line", name)
		}
		if err != nil {
			return err
		}
		l.input = newStream(nil, pipe, false)
	case err != nil && (!errors.Is(err, fs.ErrNotExist) || o.Format == nil):
		return err
	default:
		t := &tail{name: name, dirs: o.RotatedDirs, opened: &f.opened, note: f.run.note, quit: matched}
		err := t.start(since.IsZero())
		if err == nil && !since.IsZero() {
			var first int64
			first, err = t.openRotated(l, since, o.Zone)
			f.gap(l, len(t.files)+len(t.old), first, since)
		}
		if err != nil {
			return errors.Join(err, t.close())
		}
		l.input = t
	}
	f.run.logs = append(f.run.logs, l)
	return nil
}

// gap says how much of a log is missing, if no file that was found begins before the last second of the previous process.
func (f *Follower) gap(l *log, files int, first int64, since time.Time) {
	if files == 0 || l.matched && files < 2 || first/nanos <= since.Unix()+1 {
		return // it begins, or nothing was rotated
	}
	f.run.note(fmt.Sprintf("%s: no file was found that begins before %v; what was written in the %v after that is not counted, if anything was; --rotated-dir says where rotation moves files",
		l.name, since.UTC().Format(time.DateTime), time.Duration(first/nanos-since.Unix())*time.Second))
}

// tellFormat finds the formats of the logs: their own, or those of the files that were rotated away. It waits for the first line
// if there is none. That tells whether there are durations, too; logs that are empty find theirs later.
func (f *Follower) tellFormat() error {
	r := f.run
	for ; ; time.Sleep(poll) {
		f.match(time.Now())
		var format *accesslog.Format
		timed := true
		for _, l := range r.logs {
			if t, ok := l.input.(*tail); ok {
				if err := l.inspectFiles(t, r.Zone); err != nil {
					return err
				}
			}
			if l.format == nil {
				continue
			}
			if format == nil {
				format = l.format
			}
			timed = timed && (l.timed || l.first == 0 && l.format.HasDuration())
			r.note(l.doubt)
			l.doubt = ""
		}
		if format == nil {
			format, timed = r.Format, r.Format != nil && r.Format.HasDuration()
		}
		if format != nil {
			r.Format, r.Timed = format, timed // of logs whose own cannot be told
			return nil
		}
	}
}

// inspectFiles finds out about a log from its file, or from one that was rotated away.
func (l *log) inspectFiles(t *tail, zone *time.Location) error {
	for i, name := range append([]string{l.name}, rotations(l.name, t.dirs, time.Time{})...) {
		found, err := open(name, nil, new(atomic.Int64))
		if err == nil {
			if i == 0 && found.packed {
				return errors.Join(fmt.Errorf("%s is packed; a log that grows is not", name), found.close())
			}
			x := &log{name: name, format: l.format}
			err = errors.Join(x.inspect(found, sampleLines, zone), found.close())
			if err == nil && x.format != nil {
				l.format, l.timed, l.first, l.doubt = x.format, x.timed, x.first, x.doubt
				if x.first != 0 {
					return nil
				}
			}
		}
		if i == 0 && err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Timed reports whether the logs say how long calls take.
func (f *Follower) Timed() bool { return f.run.Timed }

// Names are those that are earned, nil without [Options].Names.
func (f *Follower) Names() *httpstat.Names { return f.run.names.earned }

// Close closes the logs of a Follower that will not run; Run closes them itself.
func (f *Follower) Close() error {
	var errs []error
	for _, l := range f.run.logs {
		errs = append(errs, l.input.close())
	}
	f.run.logs = nil
	return errors.Join(errs...)
}

// Run replays into a Collector that has the Clock, until ctx ends or all logs are pipes that have ended, and calls ended after
// each second. It drops the calls that it still holds when ctx ends, because earlier lines may come; the next process reads them
// again.
func (f *Follower) Run(ctx context.Context, c *collector.Collector, ended func()) (err error) {
	f.play(c, ended)
	defer func() { err = errors.Join(err, f.Close()) }()
	for ctx.Err() == nil {
		idle, err := f.round()
		if err != nil {
			return err
		}
		if len(f.run.logs)+len(f.patterns) == 0 {
			f.run.mu.Lock()
			defer f.run.mu.Unlock()
			return f.run.finish()
		}
		if !idle {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
	return nil
}

func (f *Follower) play(c *collector.Collector, ended func()) {
	f.run.player = &player{counter: &served{Collector: c, clock: f.Clock, names: f.run.names, ended: ended}, open: f.run.window.from}
}

// round takes lines until it has read some, before which it looks at all logs that were idle. It is idle if all that was written
// before it is taken; then seconds that are over by the tolerance end.
func (f *Follower) round() (idle bool, err error) {
	now := time.Now()
	f.match(now)
	for _, l := range f.run.logs {
		l.idle = false
	}
	for {
		f.run.mu.Lock()
		l, err := f.run.advance()
		f.run.mu.Unlock()
		if err != nil {
			return false, err
		}
		if l == nil {
			break
		}
		if more, err := f.run.fill(l); more || err != nil {
			return false, err
		}
	}
	upTo := now
	for _, l := range f.run.logs {
		if l.upTo.Before(upTo) {
			upTo = l.upTo
		}
	}
	f.run.mu.Lock()
	defer f.run.mu.Unlock()
	return true, f.until(upTo.Add(-f.run.Tolerance - ingestDelay).Unix())
}

// until ends the seconds before the given one.
func (f *Follower) until(second int64) error {
	if second <= f.run.window.from {
		return nil
	}
	if err := f.run.window.end(second, f.run.player.second); err != nil {
		return err
	}
	if err := f.run.player.idle(second); err != nil {
		return err
	}
	f.Clock.set(second * nanos)
	return nil
}

// Report counts the lines so far.
func (f *Follower) Report() *Report {
	f.run.mu.Lock()
	defer f.run.mu.Unlock()
	return f.run.report()
}

// Await calls open and waits for it until ctx ends: opening a named pipe takes until somebody writes to it, and reading its
// first lines, too. What is opened later is left to the end of the process.
func Await[T any](ctx context.Context, open func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	opened := make(chan result, 1)
	go func() {
		value, err := open()
		opened <- result{value, err}
	}()
	select {
	case x := <-opened:
		return x.value, x.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
