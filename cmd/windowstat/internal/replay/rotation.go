package replay

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The names that rotation gives are the only hint at which files were one log: what is in them is seen later.

// aside is what rotation adds to names: access.log.1, access.log-20260102, access-20260102.log, access.log.old, 0.log.20260102-101112.
var aside = regexp.MustCompile(`^[-._](?:\d[-.\d_T:]*|old|bak)$`)

// unpackedName is the name of a file before rotation has packed it.
func unpackedName(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
}

// originals returns the names that a log may have had before rotation gave a file this one.
func originals(name string) (names []string) {
	name = unpackedName(name)
	ext := filepath.Ext(name)
	stem := name[:len(name)-len(ext)]
	for i, c := range name {
		if i == 0 || !strings.ContainsRune("-._", c) {
			continue
		}
		if aside.MatchString(name[i:]) {
			names = append(names, name[:i])
		}
		if i < len(stem) && aside.MatchString(stem[i:]) {
			names = append(names, stem[:i]+ext)
		}
	}
	return names
}

// ofLog reports whether rotation makes a file with this name of a log with the name base.
func ofLog(name, base string) bool { return slices.Contains(originals(name), base) }

// numbered are the logs of a container, of which each start has one: 0.log, 1.log, each rotated to names such as 0.log.20260102-101112. A
// link, say in /var/log/containers, leads to that of the last start.
var numbered = regexp.MustCompile(`^\d+\.log$`)

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
	// The logs of containers are links, and what rotates them knows only the files to which they lead.
	leadsTo := filepath.Base(target)
	dirs = append([]string{filepath.Dir(target), filepath.Dir(log)}, rotatedDirs...)
	return dirs, func(name string) bool {
		return ofLog(name, base) || leadsTo != base && (ofLog(name, leadsTo) || ofContainer(name, leadsTo))
	}
}

// instance is the name of what may be another log, such as access-2.log, and not what rotation has made of access.log.
var instance = regexp.MustCompile(`[^-._\d][-._]\d{1,5}\.[^.]*[^.\d]$`)

// otherLogs tells logs of their own, and what rotation has made of them, from what it has made of one that their names could be of, too:
// access-2.log beside access.log is another log if there is an access-2.log.1.
func otherLogs(names map[string]bool, isOfLog func(name string) bool) (isOther func(name string) bool) {
	others := map[string]bool{}
	for name := range names {
		for _, of := range originals(name) {
			others[of] = others[of] || names[of] && instance.MatchString(of) && isOfLog(of)
		}
	}
	other := func(name string) bool { return others[name] }
	return func(name string) bool { return other(name) || slices.ContainsFunc(originals(name), other) }
}

// rotations returns the files that rotation has made of a log and that were written to since, the latest first.
func rotations(log string, rotatedDirs []string, since time.Time) []string {
	type found struct {
		name string
		at   os.FileInfo
	}
	dirs, isOfLog := places(log, rotatedDirs)
	entries, names := make([][]os.DirEntry, len(dirs)), map[string]bool{}
	for i, dir := range dirs {
		entries[i], _ = os.ReadDir(dir)
		for _, e := range entries[i] {
			names[e.Name()] = true
		}
	}
	isOther := otherLogs(names, isOfLog)
	var all []found
	for i, dir := range dirs {
		for _, e := range entries[i] {
			if !isOfLog(e.Name()) || isOther(e.Name()) {
				continue
			}
			at, err := e.Info()
			// The directories may be the same one, or a file may be linked into both.
			same := func(x found) bool { return os.SameFile(x.at, at) }
			if err == nil && at.Mode().IsRegular() && !at.ModTime().Before(since) && !slices.ContainsFunc(all, same) {
				all = append(all, found{filepath.Join(dir, e.Name()), at})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return b.at.ModTime().Compare(a.at.ModTime()) })
	var paths []string
	for _, f := range all {
		plain := unpackedName(f.name)
		if plain != f.name && slices.ContainsFunc(all, func(x found) bool { return x.name == plain }) {
			continue // being packed
		}
		paths = append(paths, f.name)
	}
	return paths
}
