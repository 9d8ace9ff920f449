package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

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
		case !told && !errors.Is(err, fs.ErrNotExist): // it may be gone already
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
	for _, l := range f.run.logs {
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
