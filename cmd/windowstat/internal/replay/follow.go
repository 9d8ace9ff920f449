package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector"
)

// ingestDelay is how long a line may take from the server into the log without being late.
const ingestDelay = time.Second

// NewFollower opens the logs: the options' files, which may be Stdin, and those that match patterns such as *.log. It waits until
// one of them has a line, if no format is given and all are empty, and so is what was rotated away. The Follower skips what the
// logs have now, or, if after is not the zero Time, what is not after that second: so a process goes on where the one before it
// ended. It reads all that is written later, even to files that do not exist yet.
func NewFollower(o Options, after time.Time) (_ *Follower, err error) {
	r, err := newFollower(o)
	if err != nil {
		return nil, err
	}
	r.Clock = &timeline.Clock{}
	begin := time.Now().Add(-o.Tolerance - ingestDelay).Unix()
	if !after.IsZero() {
		r.after = after.Unix()
		begin = r.after + 1
	}
	if err := r.openLogs(after); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.timeline.From = begin
	r.Clock.Set(begin * nanos)
	return r, nil
}

// openLogs opens the logs, and decides where reading begins, once and before anything else looks at them: what appears between this and
// Run is new.
func (r *Follower) openLogs(after time.Time) error {
	var errs []error
	r.matched = time.Now()
	for _, name := range r.Files {
		// A file may have a * in its name: only what is not there is a pattern.
		if _, err := os.Stat(name); err != nil && r.Clock != nil && strings.ContainsAny(name, "*?[") {
			r.patterns = append(r.patterns, name)
			continue
		}
		errs = append(errs, r.add(name, false, after))
	}
	for _, name := range r.unknown() {
		errs = append(errs, r.add(name, true, after))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(r.logs) == 0 && r.Clock != nil && r.Format == nil {
		return fmt.Errorf("no file matches %q yet; with a format it can be waited for", r.patterns)
	}
	return r.tellFormat()
}

// add adds a log. One that grows begins at its end, or, if since is not the zero Time, with all that was written since. Its files are opened
// now, as a name may lead to another file a moment later. Of a log that ends only the first lines are read.
func (r *Follower) add(name string, matched bool, since time.Time) error {
	l := r.newLog(name)
	at, err := os.Stat(name)
	if r.Clock == nil || name == "-" || err == nil && !at.Mode().IsRegular() {
		return r.addStream(l)
	}
	if err != nil && (!notThere(err) || r.Format == nil) {
		return err
	}
	t := r.newTail(name, matched, since)
	if err := t.open(time.Now()); err != nil {
		return err
	}
	if !since.IsZero() {
		r.noteGap(t)
	}
	l.input = t
	r.logs = append(r.logs, l)
	return nil
}

// addStream adds a log that ends, or a pipe that is followed. What cannot be opened again stays open. A pipe that is followed is waited for
// until it has a line, and not longer: the next one may be long in coming.
func (r *Follower) addStream(l *log) error {
	lines := sampleLines
	if r.Clock != nil {
		lines = 1
	}
	s, pipe, err := r.firstLines(l.name, lines)
	if err = errors.Join(err, s.err); err != nil {
		return err
	}
	l.sample = s
	switch {
	case l.format == nil && r.Clock == nil:
		return nil // it is empty
	case l.format == nil && r.Format == nil:
		return fmt.Errorf("%s has ended without a line", l.name)
	case pipe != nil:
		l.input = newStream(pipe, r.done)
	}
	r.logs = append(r.logs, l)
	return nil
}

// noteGap says how much of a log is missing, if no file that was found begins before the last second of the previous process.
func (r *Follower) noteGap(t *tail) {
	first, since := t.firstLine/nanos, t.since.Unix()
	if len(t.files) == 0 || t.byPattern && len(t.files) < 2 || first <= since+1 {
		return // it begins, or nothing was rotated
	}
	r.note(fmt.Sprintf("%s: no file was found that begins before %v; what was written in the %v after that is not counted, if anything was; --rotated-dir says where rotation moves files",
		t.name, t.since.UTC().Format(time.DateTime), time.Duration(first-since)*time.Second))
}

// tellFormat finds the formats of the logs: their own, or, where they grow, those of the files that were rotated away. It waits for
// the first line if there is none. That shows whether there are durations, too, which must be known before anything is served: an
// exporter that has promised response times cannot take that back. Durations count only if every log has them, or the response times
// of some calls would stand for those of all. Logs that grow and are empty find their formats later.
func (r *Follower) tellFormat() error {
	for ; ; time.Sleep(poll) {
		r.match(time.Now())
		var format *accesslog.Format
		timed := true
		for _, l := range r.logs {
			if t, ok := l.input.(*tail); ok {
				if err := t.inspect(&l.sample); err != nil {
					return err
				}
			}
			if l.format == nil {
				continue
			}
			format = cmp.Or(format, l.format)
			timed = timed && (l.timed || r.Clock != nil && l.first == 0 && l.format.HasDuration())
			r.note(l.doubt)
			l.doubt = ""
		}
		if format == nil {
			format, timed = r.Format, r.Format != nil && r.Format.HasDuration()
		}
		if format != nil || r.Clock == nil {
			r.Format, r.counts.Timed = format, timed // of logs whose own is not recognised
			return nil
		}
	}
}

// match begins to follow the files that match a pattern and were not there before, five times a second.
func (r *Follower) match(now time.Time) {
	if len(r.patterns) == 0 || now.Sub(r.matched) < poll {
		return
	}
	for _, name := range r.unknown() {
		l := r.newLog(name)
		l.input = r.newTail(name, true, r.matched)
		r.logs = append(r.logs, l)
	}
	r.matched = now
}

// packedNames are the ends of names of packed files, which do not grow.
var packedNames = []string{".gz", ".zst", ".bz2", ".xz"}

// unknown returns the files that match a pattern, are not followed yet, are not packed, and are not what rotation has made of one
// that is there.
func (r *Follower) unknown() (found []string) {
	known := map[string]bool{}
	var files []os.FileInfo // two names may be of one file
	for _, l := range r.logs {
		known[filepath.Clean(l.name)] = true
		if at, err := os.Stat(l.name); err == nil { // its tail may not have looked yet
			files = append(files, at)
		}
	}
	matches := map[string]os.FileInfo{}
	for _, pattern := range r.patterns {
		list, _ := filepath.Glob(pattern) // the command has checked the pattern
		for _, name := range list {
			if known[name] || slices.Contains(packedNames, filepath.Ext(name)) {
				continue
			}
			if at, err := os.Stat(name); err == nil && at.Mode().IsRegular() {
				known[name], matches[name] = true, at
			}
		}
	}
	// Names come first, as rotation gives names; then what file it is, as several names may lead to one.
	for _, name := range slices.Sorted(maps.Keys(matches)) {
		at, dir := matches[name], filepath.Dir(name)
		same := func(x os.FileInfo) bool { return os.SameFile(x, at) }
		rotated := func(of string) bool { return known[filepath.Join(dir, of)] }
		if !r.openFiles.has(at) && !slices.ContainsFunc(files, same) && !slices.ContainsFunc(originals(filepath.Base(name)), rotated) {
			found, files = append(found, name), append(files, at)
		}
	}
	return found
}

// Run replays into a Collector that has the Clock, until ctx ends or all logs are pipes that have ended, and calls ended after
// each second. It drops the calls that it still holds when ctx ends, because earlier lines may come; the next process reads them
// again.
func (r *Follower) Run(ctx context.Context, c *collector.Collector, ended func()) error {
	r.serve(c, ended)
	err := r.play(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return errors.Join(err, r.Close())
}

// serve has the calls counted by a Collector.
func (r *Follower) serve(c *collector.Collector, ended func()) {
	r.timeline.Counter = &timeline.Collected{Collector: c, Clock: r.Clock, Resource: r.names.inbound, Ended: ended}
}

// Close closes the logs of a Follower that will not run; Run closes them itself.
func (r *Follower) Close() error {
	var errs []error
	for _, l := range r.logs {
		if l.input != nil {
			errs = append(errs, l.input.close())
		}
	}
	r.logs = nil
	return errors.Join(errs...)
}
