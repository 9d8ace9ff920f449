package replay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// followed is one of the logs that a Follower reads: a file that grows, or a pipe.
type followed struct {
	name    string
	matched bool    // by a pattern
	tail    *tail   // nil if it is a pipe
	stream  *stream // nil if it is a file
	source  *source // of a pipe: what its first line tells
	format  *accesslog.Format
	parser  *lineParser // nil until there is a line
	items   []item      // read and not yet taken
	latest  int64       // the latest time so far, with that of the first item
	upTo    time.Time   // all that was written before was read; the zero Time if there may be more
}

// add opens a log at its end, or, if since is not the zero Time, with all that was written since.
func (f *Follower) add(name string, matched bool, since time.Time) (err error) {
	l := &followed{name: name, matched: matched}
	o := &f.run.Options
	at, err := os.Stat(name)
	switch {
	case name == "-" || err == nil && !at.Mode().IsRegular():
		if l.source, err = inspect(name, o.Stdin, o.Format, o.Zone, new(atomic.Int64), true); err != nil {
			return err
		}
		if l.source.format == nil && o.Format == nil {
			return fmt.Errorf("%s has ended without a line", name)
		}
		l.stream = newStream(l.source.kept, f.wake)
	case err != nil && (!errors.Is(err, os.ErrNotExist) || o.Format == nil):
		return err
	default:
		if l.tail, err = newTail(name, since, &f.opened); err != nil {
			return err
		}
		l.tail.quit = matched
	}
	f.logs = append(f.logs, l)
	return nil
}

// inspect finds out about a log from its first lines, or from those of the file that was rotated away; nil if there are none.
func (l *followed) inspect(o *Options) (*source, error) {
	if l.source != nil {
		if l.source.format == nil {
			return nil, nil
		}
		return l.source, nil
	}
	names := append([]string{l.name}, rotations(l.name, time.Time{})...)
	for i, name := range names {
		s, err := inspect(name, nil, o.Format, o.Zone, new(atomic.Int64), true)
		switch {
		case i == 0 && err == nil && s.packed:
			return nil, fmt.Errorf("%s is packed; a log that grows is not", name)
		case i == 0 && err != nil && !errors.Is(err, os.ErrNotExist):
			return nil, err
		case err == nil && s.format != nil:
			return s, nil
		}
	}
	return nil, nil
}

// look returns whole lines that are new, or, if there are none, the time up to which all lines were returned. At the end of a pipe
// the error is io.EOF.
func (l *followed) look(now time.Time) (block, error) {
	if l.stream != nil {
		return l.stream.look(now)
	}
	return l.tail.look()
}

// gone reports whether the file is there no more, and was read to its end.
func (l *followed) gone() bool {
	if l.tail == nil || len(l.tail.files)+len(l.tail.old) > 0 {
		return false
	}
	_, err := os.Stat(l.name)
	return errors.Is(err, os.ErrNotExist)
}

func (l *followed) close() error {
	if l.tail == nil {
		return nil // a pipe is left to the end of the process: reading it may block
	}
	return l.tail.close()
}

func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

func isDirectory(name string) bool {
	at, err := os.Stat(name)
	return err == nil && at.IsDir()
}

// match opens the files that match a pattern and were not there before, five times a second. One that cannot be opened is said
// once and tried again, so that it stops no other; then it is read from where it was when it came.
func (f *Follower) match(now time.Time) {
	if len(f.patterns) == 0 || now.Sub(f.matched) < poll {
		return
	}
	since := f.matched
	f.matched = now
	for _, name := range f.unknown(nil) {
		came, told := f.unreadable[name]
		if !told {
			came = since
		}
		switch err := f.add(name, true, came); {
		case err == nil:
			delete(f.unreadable, name)
		case !told && !errors.Is(err, os.ErrNotExist): // it may be gone already
			f.unreadable[name] = since
			f.run.note(fmt.Sprintf("%v; it is tried again", err))
		}
	}
}

// packedNames are the ends of names of packed files, which do not grow.
var packedNames = []string{".gz", ".zst", ".bz2", ".xz"}

// unknown returns the files that match a pattern, are not among the names or followed yet, are not packed, and are not what rotation
// has made of one that is there.
func (f *Follower) unknown(names []string) (found []string) {
	known := map[string]bool{}
	var files []os.FileInfo // two names may be of one file
	know := func(name string) {
		known[filepath.Clean(name)] = true
		if at, err := os.Stat(name); err == nil {
			files = append(files, at)
		}
	}
	for _, name := range names {
		know(name)
	}
	for _, l := range f.logs {
		know(l.name) // its tail may not have looked yet
	}
	var matches []string
	for _, pattern := range f.patterns {
		list, _ := filepath.Glob(pattern) // the command has checked the pattern
		for _, name := range list {
			if !known[name] && !slices.Contains(packedNames, filepath.Ext(name)) {
				known[name] = true
				matches = append(matches, name)
			}
		}
	}
	for _, name := range matches {
		if isRotated(name, func(of string) bool { return known[of] && !isDirectory(of) }) {
			continue
		}
		at, err := os.Stat(name)
		if err != nil || !at.Mode().IsRegular() || f.opened.has(at) || slices.ContainsFunc(files, func(x os.FileInfo) bool { return os.SameFile(x, at) }) {
			continue
		}
		found, files = append(found, name), append(files, at)
	}
	return found
}
