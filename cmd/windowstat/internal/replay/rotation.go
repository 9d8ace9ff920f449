package replay

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Rotation is recognized by names. Which of the named files belong to a log is decided later, by their content.

// suffix matches what rotation appends to a name: access.log.1, access.log-20260102, access-20260102.log,
// access.log.old, 0.log.20260102-101112.
var suffix = regexp.MustCompile(`^[-._](?:\d[-.\d_T:]*|old|bak)$`)

// unpackedName returns the name of a file without the extension of a packed file.
func unpackedName(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
}

// originals returns the possible names of a log that was rotated to a name.
func originals(name string) (names []string) {
	name = unpackedName(name)
	ext := filepath.Ext(name)
	stem := name[:len(name)-len(ext)]
	for i, c := range name {
		if i == 0 || !strings.ContainsRune("-._", c) {
			continue
		}
		if suffix.MatchString(name[i:]) {
			names = append(names, name[:i])
		}
		if i < len(stem) && suffix.MatchString(stem[i:]) {
			names = append(names, stem[:i]+ext)
		}
	}
	return names
}

// isRotated reports whether rotation may have given a file of the log base this name.
func isRotated(name, base string) bool { return slices.Contains(originals(name), base) }

// numbered matches the logs of a container. Each start of a container has one: 0.log, 1.log. They are rotated to names
// such as 0.log.20260102-101112. A symbolic link, for example in /var/log/containers, leads to the log of the last
// start.
var numbered = regexp.MustCompile(`^\d+\.log$`)

// ofContainer reports whether a name belongs to the container of the log base, to which a symbolic link leads: a log of
// another start, or a rotated log.
func ofContainer(name, base string) bool {
	start, _, _ := strings.Cut(name, ".log")
	start += ".log"
	return numbered.MatchString(base) && numbered.MatchString(start) && name != base &&
		(name == start || isRotated(name, start))
}

// directories returns the directories that may have files of a log: its own one, the one of the file to which it leads
// if it is a symbolic link, and rotatedDirs. isOfLog reports whether a name in them may belong to the log.
func directories(log string, rotatedDirs []string) (dirs []string, isOfLog func(name string) bool) {
	base := filepath.Base(log)
	target, err := filepath.EvalSymlinks(log)
	if err != nil { // it may be created later
		dir, _ := filepath.EvalSymlinks(filepath.Dir(log))
		target = filepath.Join(dir, base)
	}
	// The logs of containers are links, and rotation renames only the files to which they lead.
	leadsTo := filepath.Base(target)
	dirs = append([]string{filepath.Dir(target), filepath.Dir(log)}, rotatedDirs...)
	return dirs, func(name string) bool {
		return isRotated(name, base) || leadsTo != base && (isRotated(name, leadsTo) || ofContainer(name, leadsTo))
	}
}

// instance matches names that may be separate logs, such as access-2.log, instead of rotated files of access.log.
var instance = regexp.MustCompile(`[^-._\d][-._]\d{1,5}\.[^.]*[^.\d]$`)

// otherLogs distinguishes separate logs, and their rotated files, from rotated files of the log of isOfLog. A name such
// as access-2.log next to access.log is a separate log if it has rotated files itself, for example access-2.log.1.
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

// rotations returns the rotated files of a log that were written since, the latest first.
func rotations(log string, rotatedDirs []string, since time.Time) []string {
	type found struct {
		name string
		at   os.FileInfo
	}
	dirs, isOfLog := directories(log, rotatedDirs)
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
			// The directories may be equal, or both may have links to a file.
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
