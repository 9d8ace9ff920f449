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

// NewFollower opens the logs in Options.Files, which may include Stdin and patterns such as *.log. Without a Format, it
// waits until one of the logs or of their rotated files has a line.
//
// The Follower skips the current lines of the logs. If after is not the zero Time, it skips only the lines up to the
// second after, so a process continues where the previous one ended. It reads all later lines, also from files that do
// not exist yet.
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

// openLogs opens the logs and determines where reading starts. A file that appears after openLogs is new, and is read
// from its start.
//
// Clock is nil in a replay of complete logs, and set in a Follower that waits for new lines. Patterns are expanded
// again later only in the second case.
func (r *Follower) openLogs(after time.Time) error {
	var errs []error
	r.matched = time.Now()
	for _, name := range r.Files {
		// A name is a pattern only if no file has it, because a file name may contain a *.
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

// add adds a log. A log that grows is read from its end or, if since is not the zero Time, from the first line written
// after since. add opens its files, because the name may lead to another file before the first poll. Of a log that
// ends, add reads only the first lines.
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
// followed pipe, addStream waits for a single line, because the next line may take long.
func (r *Follower) addStream(l *log) error {
	// The first lines determine the format of the log.
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

// noteGap tells the user which lines are missing if no file starts before the last second of the previous process.
func (r *Follower) noteGap(t *tail) {
	first, since := t.firstLine/nanos, t.since.Unix()
	if len(t.files) == 0 || t.byPattern && len(t.files) < 2 || first <= since+1 {
		return // the log is new, or nothing was rotated
	}
	r.note(fmt.Sprintf("%s: no file starts before %v; lines of the %v after that are not counted; "+
		"set --rotated-dir to the directory into which rotation moves files",
		t.name, t.since.UTC().Format(time.DateTime), time.Duration(first-since)*time.Second))
}

// findFormat sets the formats of the logs: the detected format of the log or, if a log that grows has no line yet, the
// format of its rotated files. If no log has a line, it waits for the first one.
//
// It also decides whether the logs have durations. It decides before anything is served, because an exporter that has
// served response times cannot withdraw them. Durations count only if every log has them; otherwise the response times
// of some calls would look like the response times of all calls. The format of an empty log that grows is detected with
// its first line.
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

// match adds the new files that match a pattern. It searches at most once per poll interval.
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

// packedNames are the extensions of packed files, which no pattern matches because they do not grow.
var packedNames = []string{".gz", ".zst", ".bz2", ".xz"}

// unknown returns the files that match a pattern and should become logs. It leaves out packed files, files that are
// followed under any name, and rotated files of other logs. For the pattern * and the followed log access.log:
//
//	access.log         followed
//	current.log        a link to access.log: the same file
//	access-2026.log    a rotated file of access.log
//	access.log.gz      packed
//	error.log          unknown
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
	// Compare names first, because rotation assigns names. Then compare identities, because several names may lead to
	// one file.
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

// Run replays into a Collector, whose clock must be r.Clock, until ctx ends or all logs are pipes that have ended. It
// calls ended after each second. When ctx ends, Run drops the calls of seconds that are still open, because earlier
// lines may arrive. The next process reads their lines again.
func (r *Follower) Run(ctx context.Context, c *collector.Collector, ended func()) error {
	r.serve(c, ended)
	err := r.play(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return errors.Join(err, r.Close())
}

// serve makes c the counter of the calls.
func (r *Follower) serve(c *collector.Collector, ended func()) {
	r.timeline.Counter = &timeline.Collected{Collector: c, Clock: r.Clock, Resource: r.names.inbound, Ended: ended}
}

// Close closes the logs of a Follower that was not run. Run closes them when it returns.
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
