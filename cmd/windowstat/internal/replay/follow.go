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

// ingestDelay is the time that a line may take from the server into the log without being late.
const ingestDelay = time.Second

// NewFollower opens the logs: Options.Files, which may include Stdin and patterns such as *.log. Without a Format, it
// waits until one of the logs or their rotated files has a line.
//
// The Follower skips the current lines of the logs. If after is not the zero Time, it skips the lines up to that second
// instead, so a process continues where the previous one ended. It reads all lines that are written later, also to
// files that do not exist yet.
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

// openLogs opens the logs, and decides where reading starts. Files that appear between openLogs and Run are new.
func (r *Follower) openLogs(after time.Time) error {
	var errs []error
	r.matched = time.Now()
	for _, name := range r.Files {
		// A file name may contain a *, so only a name without a file is a pattern.
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
	return r.findFormat()
}

// add adds a log. Reading of a log that grows starts at its end or, if since is not the zero Time, with all lines
// written since. Its files are opened now, because the name may lead to another file a moment later. Of a log that
// ends, only the first lines are read.
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

// addStream adds a log that ends, or a pipe that is followed. An input that cannot be opened again stays open. For a
// pipe, addStream waits for one line and no longer, because the next one may take long.
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
		return nil // an empty log
	case l.format == nil && r.Format == nil:
		return fmt.Errorf("%s has ended without a line", l.name)
	case pipe != nil:
		l.input = newStream(pipe, r.done)
	}
	r.logs = append(r.logs, l)
	return nil
}

// noteGap reports the missing part of a log, if no file starts before the last second of the previous process.
func (r *Follower) noteGap(t *tail) {
	first, since := t.firstLine/nanos, t.since.Unix()
	if len(t.files) == 0 || t.byPattern && len(t.files) < 2 || first <= since+1 {
		return // the log is new, or nothing was rotated
	}
	r.note(
		fmt.Sprintf(
			"%s: no file starts before %v; lines of the %v after that are not counted; set --rotated-dir to the "+
				"directory into which rotation moves files",
			t.name,
			t.since.UTC().Format(time.DateTime),
			time.Duration(first-since)*time.Second,
		),
	)
}

// findFormat sets the formats of the logs: their own or, for logs that grow, the formats of rotated files. Without any
// line, it waits for the first one.
//
// It also decides whether the logs have durations, before anything is served, because an exporter that has served
// response times cannot withdraw them. Durations count only if every log has them; otherwise the response times of some
// calls would pass for those of all. The format of an empty log that grows is detected later.
func (r *Follower) findFormat() error {
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
			r.Format, r.counts.Timed = format, timed // for logs whose format is not detected
			return nil
		}
	}
}

// match starts to follow new files that match a pattern, at most five times a second.
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

// packedNames are the extensions of packed files, which do not grow.
var packedNames = []string{".gz", ".zst", ".bz2", ".xz"}

// unknown returns the files that match a pattern and are not followed yet, without packed files and rotated files of
// existing logs.
func (r *Follower) unknown() (found []string) {
	known := map[string]bool{}
	var files []os.FileInfo // two names may lead to one file
	for _, l := range r.logs {
		known[filepath.Clean(l.name)] = true
		if at, err := os.Stat(l.name); err == nil { // its tail may not have opened it yet
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
	// Compare names first, because rotation assigns names, and then identities, because several names may lead to one
	// file.
	for _, name := range slices.Sorted(maps.Keys(matches)) {
		at, dir := matches[name], filepath.Dir(name)
		same := func(x os.FileInfo) bool { return os.SameFile(x, at) }
		rotated := func(of string) bool { return known[filepath.Join(dir, of)] }
		if !r.openFiles.has(at) && !slices.ContainsFunc(files, same) &&
			!slices.ContainsFunc(originals(filepath.Base(name)), rotated) {
			found, files = append(found, name), append(files, at)
		}
	}
	return found
}

// Run replays into a Collector with the Clock, until ctx ends or all logs are pipes that have ended. It calls ended
// after each second. When ctx ends, Run drops the calls that it holds, because earlier lines may arrive; the next
// process reads them again.
func (r *Follower) Run(ctx context.Context, c *collector.Collector, ended func()) error {
	r.serve(c, ended)
	err := r.play(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return errors.Join(err, r.Close())
}

// serve makes a Collector count the calls.
func (r *Follower) serve(c *collector.Collector, ended func()) {
	r.timeline.Counter = &timeline.Collected{Collector: c, Clock: r.Clock, Resource: r.names.inbound, Ended: ended}
}

// Close closes the logs of a Follower that will not run. Run closes them itself.
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
