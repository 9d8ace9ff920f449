package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Follower replays logs as they grow, in one timeline. The time of its Collector is the wall clock less the tolerance and a
// second. It must be made with [NewFollower].
type Follower struct {
	Clock *Clock // for the Collector's options
	Timed bool   // the logs say how long calls take

	mu         sync.Mutex // guards run but for its Options
	run        *run
	logs       []*followed
	opened     opened
	patterns   []string
	matched    time.Time            // when files that match the patterns were last looked for
	unreadable map[string]time.Time // files that match, and since when they have been there
	format     *accesslog.Format    // of logs whose own cannot be told
	names      *names               // of all logs
	ids        source               // only its ids, which are those of the names
	changed    chan struct{}        // tells that it is worth to look
	unwatch    func() error
}

// ingestDelay is how long a line may take from the server into the log without being late.
const ingestDelay = time.Second

// NewFollower opens the logs: the options' files, which may be Stdin, and those that match patterns such as *.log. It waits until
// one of them has a line, if no format is given and all are empty, and so is what was rotated away. The Follower skips what the
// logs have now, or, if after is not the zero Time, what is not after that second: so a process goes on where the one before it
// ended. It reads all that is written later, even to files that do not exist yet.
func NewFollower(o Options, after time.Time) (_ *Follower, err error) {
	f := &Follower{Clock: &Clock{}, run: newRun(o), changed: make(chan struct{}, 1), unwatch: func() error { return nil }, unreadable: map[string]time.Time{}}
	f.names, f.opened.note = f.run.newNames(), f.run.note
	begin := time.Now().Add(-o.Tolerance - ingestDelay).Unix()
	if !after.IsZero() {
		f.run.after = after.Unix()
		begin = f.run.after + 1
	}
	if err := errors.Join(f.run.earnNames(), f.open(after)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.run.Timed = f.Timed
	f.run.window.from, f.run.window.to = begin, begin
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
	if o.Watch != nil {
		if end, err := o.Watch(append(names, f.patterns...), f.wake); err == nil {
			f.unwatch = end
		}
	}
	return f.tellFormat()
}

// tellFormat finds the formats of the logs: their own, or those of the files that were rotated away. It waits for the first line
// if there is none. That tells whether there are durations, too; logs that are empty find theirs later.
func (f *Follower) tellFormat() error {
	f.format, f.Timed = f.run.Format, true
	for ; ; time.Sleep(poll) {
		f.match(time.Now())
		known := 0
		for _, l := range f.logs {
			s, err := l.inspect(&f.run.Options)
			if err != nil {
				return err
			}
			if s == nil {
				continue
			}
			known++
			if f.format == nil {
				f.format = s.format
			}
			f.Timed = f.Timed && (s.timed || s.first == 0 && s.format.HasDuration())
			f.run.note(s.doubt)
			l.format = s.format
		}
		if known == 0 && f.format != nil {
			f.Timed = f.format.HasDuration()
		}
		if f.format != nil {
			return nil
		}
	}
}

// wake makes the Follower look.
func (f *Follower) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Names are those that are earned, nil without [Options].Names.
func (f *Follower) Names() *httpstat.Names { return f.run.earned }

// Close closes the logs of a Follower that will not run; Run closes them itself.
func (f *Follower) Close() error {
	errs := []error{f.unwatch()}
	for _, l := range f.logs {
		errs = append(errs, l.close())
	}
	f.logs, f.unwatch = nil, func() error { return nil }
	return errors.Join(errs...)
}

// Run replays into a Collector that has the Clock, until ctx ends or all logs are pipes that have ended, and calls ended after
// each second. It drops the calls that it still holds when ctx ends, because earlier lines may come; the next process reads them
// again.
func (f *Follower) Run(ctx context.Context, c *collector.Collector, ended func()) (err error) {
	r := f.run
	r.player = newPlayer(c, f.Clock, &r.names, r.window.from)
	r.player.inbound = true
	r.player.done = func(time.Time, []*collector.Resource, int64) error { ended(); return nil }
	defer func() { err = errors.Join(err, f.Close()) }()
	for ctx.Err() == nil {
		idle, err := f.round()
		if err != nil {
			return err
		}
		if len(f.logs)+len(f.patterns) == 0 {
			return f.finish()
		}
		if !idle {
			continue
		}
		select {
		case <-ctx.Done():
		case <-f.changed:
			time.Sleep(time.Duration(len(f.logs)-1) * pace)
		case <-time.After(poll):
		}
	}
	return nil
}

// pace is the pause for each log between two rounds: where there are many, one that is busy must not have all looked at all the
// time.
const pace = 100 * time.Microsecond

// round looks at all logs, and takes their lines in the order of their times. It is idle if all that was written before it is
// taken; then seconds that are over by the tolerance end.
func (f *Follower) round() (idle bool, err error) {
	now := time.Now()
	f.match(now)
	upTo, idle := now, true
	for _, l := range slices.Clone(f.logs) {
		if len(l.items) == 0 {
			ended, err := f.look(l, now)
			if err != nil {
				return false, err
			}
			if ended {
				f.logs = slices.DeleteFunc(f.logs, func(x *followed) bool { return x == l })
				continue
			}
		}
		if l.upTo.IsZero() {
			idle = false
		} else if l.upTo.Before(upTo) {
			upTo = l.upTo
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.merge(); err != nil || !idle {
		return false, err
	}
	return true, f.until(upTo.Add(-f.run.Tolerance - ingestDelay).Unix())
}

// look reads and parses what a log has. It closes a pipe that has ended, and a file that matched a pattern and is gone.
func (f *Follower) look(l *followed, now time.Time) (ended bool, err error) {
	x, err := l.look(now)
	if errors.Is(err, io.EOF) {
		return true, l.close()
	}
	if err != nil {
		return false, err
	}
	l.upTo = x.upTo
	f.parse(l, x)
	if l.matched && len(l.items) == 0 && l.gone() {
		return true, l.close()
	}
	return false, nil
}

// merge takes lines, each time from the log that is furthest behind, until there are none or there may be more of that log.
func (f *Follower) merge() error {
	if slices.ContainsFunc(f.logs, func(l *followed) bool { return len(l.items) == 0 && l.upTo.IsZero() }) {
		return nil // there may be earlier lines
	}
	for l := f.behind(); l != nil; l = f.behind() {
		it := &l.items[0]
		l.items = l.items[1:]
		if it.stamp > f.run.present {
			f.run.Future++
		} else if err := f.run.take(&f.ids, it); err != nil {
			return err
		}
		if len(l.items) == 0 && l.upTo.IsZero() {
			return nil
		}
	}
	return nil
}

// behind returns the log with lines that is furthest behind; nil if none has any.
func (f *Follower) behind() (first *followed) {
	for _, l := range f.logs {
		if len(l.items) == 0 {
			continue
		}
		if at := l.items[0].stamp; at <= f.run.present {
			l.latest = max(l.latest, at)
		}
		if first == nil || l.latest < first.latest {
			first = l
		}
	}
	return first
}

// parse parses and counts the lines of a block.
func (f *Follower) parse(l *followed, x block) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.parser == nil && (len(x.data) > 0 || x.long > 0) {
		format := l.format
		if s := (&source{name: l.name}); format == nil && s.judge(x.data, f.run.Zone) == nil {
			format = s.format
			f.run.note(s.doubt)
		}
		if format == nil {
			format = f.format
		}
		l.parser = &lineParser{Parser: format.NewParser(f.run.Zone), file: l.name, names: f.names, timed: f.Timed, to: math.MaxInt64}
	}
	f.run.Cut += x.cut
	if x.truncated {
		f.run.Truncated++
	}
	if l.parser == nil {
		return
	}
	var b batch
	l.parser.parse(x, &b)
	if n := len(b.items); n > 0 && b.items[n-1].stamp < f.run.after*nanos {
		b.lines, b.malformed, b.examples = int64(n), 0, nil // the previous process has reported them
	}
	f.run.batch(&f.ids, &b)
	l.items = b.items
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

// finish plays all that is held.
func (f *Follower) finish() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run.finish()
}

// Report counts the lines so far.
func (f *Follower) Report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run.Report
}
