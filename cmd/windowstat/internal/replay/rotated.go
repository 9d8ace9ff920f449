package replay

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// aside are the ends of names that rotation gives: access.log.1, access.log-20260102.gz, access-20260102.log, access.log.old,
// 0.log.20260102-101112.
var aside = regexp.MustCompile(`^[-._](?:\d[-.\d_T:]*|old|bak)(?:\.(?:gz|zst))?$`)

// numbered are the logs of a container, of which each start has one.
var numbered = regexp.MustCompile(`^\d+\.log$`)

// ofLog reports whether rotation makes a file with this name of a log with the name base.
func ofLog(name, base string) bool {
	ext := filepath.Ext(base)
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(base, ext))
	return ok && aside.MatchString(strings.Replace(rest, ext, "", 1))
}

// ofContainer reports the same of a log to which a symbolic link leads, and of those of earlier and later starts.
func ofContainer(name, base string) bool {
	start, _, _ := strings.Cut(name, ".log")
	start += ".log"
	return numbered.MatchString(base) && numbered.MatchString(start) && name != base && (name == start || ofLog(name, start))
}

// places are the directories in which the files of a log are: its own, that of the file to which it leads if it is a symbolic link,
// and those that are given; and which names they have.
func places(log string, rotatedDirs []string) (dirs []string, isOfLog func(name string) bool) {
	base := filepath.Base(log)
	target, err := filepath.EvalSymlinks(log)
	if err != nil { // it may come
		dir, _ := filepath.EvalSymlinks(filepath.Dir(log))
		target = filepath.Join(dir, base)
	}
	leadsTo := filepath.Base(target)
	dirs = append([]string{filepath.Dir(target), filepath.Dir(log)}, rotatedDirs...)
	return dirs, func(name string) bool {
		return ofLog(name, base) || leadsTo != base && (ofLog(name, leadsTo) || ofContainer(name, leadsTo))
	}
}

// rotations returns the files that rotation has made of a log and that were written to since, the latest first.
func rotations(log string, rotatedDirs []string, since time.Time) []string {
	type found struct {
		name string
		at   os.FileInfo
	}
	var all []found
	dirs, isOfLog := places(log, rotatedDirs)
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if !isOfLog(e.Name()) {
				continue
			}
			at, err := e.Info()
			same := func(x found) bool { return os.SameFile(x.at, at) }
			if err == nil && at.Mode().IsRegular() && !at.ModTime().Before(since) && !slices.ContainsFunc(all, same) {
				all = append(all, found{filepath.Join(dir, e.Name()), at})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return b.at.ModTime().Compare(a.at.ModTime()) })
	var names []string
	for _, f := range all {
		plain := strings.TrimSuffix(strings.TrimSuffix(f.name, ".gz"), ".zst")
		if plain != f.name && slices.ContainsFunc(all, func(x found) bool { return x.name == plain }) {
			continue // being packed
		}
		names = append(names, f.name)
	}
	return names
}

// isRotated reports whether a file has a name that rotation gives to another one, which is known.
func isRotated(name string, known func(string) bool) bool {
	dir, base := filepath.Split(name)
	ext := filepath.Ext(base)
	for i, c := range base {
		if !strings.ContainsRune("-._", c) || i == 0 {
			continue
		}
		if aside.MatchString(base[i:]) && known(dir+base[:i]) ||
			i < len(base)-len(ext) && aside.MatchString(base[i:len(base)-len(ext)]) && known(dir+base[:i]+ext) {
			return true
		}
	}
	return false
}

// rotated is a file that rotation has put aside, read to its end.
type rotated struct {
	*file
	lines blocks
}

func newRotated(f *file) *rotated { return &rotated{f, blocks{r: f}} }

// openRotated opens what was written since and rotated away, in the order of the first lines. Servers may still write to what is
// not packed. It returns the time of the earliest line, 0 if there is none.
func (t *tail) openRotated(l *log, since time.Time, zone *time.Location) (first int64, err error) {
	type part struct {
		name   string
		packed bool
		first  int64
	}
	var parts []part
	for _, name := range append(rotations(t.name, t.dirs, since), t.name) {
		f, err := open(name, nil, new(atomic.Int64))
		if errors.Is(err, fs.ErrNotExist) {
			continue // rotated once more: it is open, or has another name
		}
		if err != nil {
			return 0, err
		}
		head := &log{name: name, format: l.format}
		if err := head.inspect(f, sampleLines, zone); err == nil && head.format != nil {
			if first == 0 || head.first < first {
				first = head.first
			}
		}
		if err := f.close(); err != nil {
			return 0, err
		}
		if name != t.name {
			parts = append(parts, part{name, f.packed, head.first})
		}
	}
	slices.Reverse(parts) // the one written to last was the first
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.first/nanos, b.first/nanos) })
	var files []*growing
	for i, p := range parts {
		if slices.ContainsFunc(parts[i:], func(p part) bool { return p.packed }) { // nothing is written to it any more
			f, err := open(p.name, nil, new(atomic.Int64))
			if err != nil {
				return 0, err
			}
			t.old = append(t.old, newRotated(f))
			continue
		}
		g, err := t.opened.file(p.name, time.Now())
		if err != nil {
			return 0, err
		}
		if g != nil {
			files = append(files, g)
		}
	}
	t.files = append(files, t.files...)
	return first, nil
}

// nextOld returns lines of what was put aside; ok is false if there is nothing left.
func (t *tail) nextOld() (x block, ok bool, err error) {
	for len(t.old) > 0 {
		x, err := t.old[0].lines.next(nil)
		if err == nil {
			return x, true, nil
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if err = errors.Join(err, t.old[0].close()); err != nil {
			return x, false, err
		}
		t.old = t.old[1:]
	}
	return block{}, false, nil
}

// copyOf finds the copy of a file that was truncated, and goes on in it where the reading of the file has ended; nil if there is
// none that has more.
func (t *tail) copyOf(g *growing) *rotated {
	for _, name := range rotations(t.name, t.dirs, g.grown.Add(-2*time.Second)) { // clocks of file systems are coarse
		f, err := open(name, nil, new(atomic.Int64))
		if err != nil {
			continue
		}
		head := make([]byte, len(g.head))
		if _, err = io.ReadFull(f, head); err == nil && bytes.Equal(head, g.head) && f.skip(g.offset-int64(len(head))) == nil {
			r := newRotated(f)
			r.lines.rest, r.lines.skip = g.lines.rest, g.lines.skip
			return r
		}
		_ = f.close()
	}
	return nil
}
