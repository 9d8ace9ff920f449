package replay

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// This file finds the files that rotation may have made of a log, by their names. Their content decides later whether
// they belong to the log. For the log /var/log/access.log, these names are candidates:
//
//	access.log.1, access.log.2.gz     logrotate
//	access.log-20260102.zst           logrotate with dateext
//	access-20260102.log               logrotate with dateext and extension; log4j, logback
//	access.log.old, access.log.bak    scripts
//	0.log, 0.log.20260102-101112.gz   Kubernetes, if access.log is a link to 1.log

// suffix matches the text that rotation adds to a name, see above.
var suffix = regexp.MustCompile(`^[-._](?:\d[-.\d_T:]*|old|bak)$`)

// unpackedName returns a name without the extension of a packed file.
func unpackedName(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
}

// originals returns the logs that rotation may have renamed to a name: access.log for access.log.1.gz, and also for
// access-20260102.log.
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

// isRotated reports whether rotation may have renamed the log base to name.
func isRotated(name, base string) bool { return slices.Contains(originals(name), base) }

// numbered matches the logs of a container. Each start of a container creates one: 0.log, 1.log. A symbolic link, for
// example in /var/log/containers, leads to the log of the last start.
var numbered = regexp.MustCompile(`^\d+\.log$`)

// ofContainer reports whether a name is a log of another start of the container whose log is base, or a rotated log.
func ofContainer(name, base string) bool {
	start, _, _ := strings.Cut(name, ".log")
	start += ".log"
	return numbered.MatchString(base) && numbered.MatchString(start) && name != base &&
		(name == start || isRotated(name, start))
}

// directories returns the directories that may have files of a log, and a function that reports whether a name in them
// may belong to the log. The directories are the directory of the log, rotatedDirs and, if the log is a symbolic link,
// the directory of its target.
func directories(log string, rotatedDirs []string) (dirs []string, isOfLog func(name string) bool) {
	base := filepath.Base(log)
	target, err := filepath.EvalSymlinks(log)
	if err != nil { // the log may be created later
		dir, _ := filepath.EvalSymlinks(filepath.Dir(log))
		target = filepath.Join(dir, base)
	}
	// For logs of containers, rotation renames the target of the link.
	leadsTo := filepath.Base(target)
	dirs = append([]string{filepath.Dir(target), filepath.Dir(log)}, rotatedDirs...)
	return dirs, func(name string) bool {
		return isRotated(name, base) || leadsTo != base && (isRotated(name, leadsTo) || ofContainer(name, leadsTo))
	}
}

// instance matches names that may be separate logs instead of rotated files, such as access-2.log next to access.log.
var instance = regexp.MustCompile(`[^-._\d][-._]\d{1,5}\.[^.]*[^.\d]$`)

// otherLogs returns a function that reports whether a name belongs to a separate log although isOfLog accepts it. A
// name such as access-2.log is a separate log if it has rotated files itself, for example access-2.log.1.
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

// rotations returns the rotated files of a log that were modified after since, the latest first.
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
			// Skip a file that was found before: two of the directories may be the same, or both may have a link to the
			// file.
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
			continue // gzip is reading plain, which has all lines
		}
		paths = append(paths, f.name)
	}
	return paths
}
