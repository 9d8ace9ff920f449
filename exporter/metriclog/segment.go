package metriclog

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// segment is one data file of a log, by what its name says. A log is what one process writes, one after the other.
type segment struct {
	log   string // what the names of its files begin with: shop-metrics.log, or shop-metrics.log.pid12
	date  string // yyyy-MM-dd
	n     int    // 0 for the first of the day, which has no number
	first int64  // Unix time of its first second
	known bool   // if not, it is at least that
}

const (
	idxSuffix  = ".idx"
	lockSuffix = ".lck"
)

func (s segment) name() string {
	if s.n == 0 {
		return s.log + "." + s.date
	}
	return s.log + "." + s.date + "." + strconv.Itoa(s.n)
}

// fileName is the application's name as it stands in the names of files. Dots part their fields, so those in it become
// dashes, as in Sentinel.
func fileName(app string) string { return strings.ReplaceAll(app, ".", "-") }

// logName is what the names of an application's files begin with. Without a process, pid is 0.
func logName(app, kind string, pid int) string {
	name := fileName(app) + "-metrics." + kind
	if pid != 0 {
		name += ".pid" + strconv.Itoa(pid)
	}
	return name
}

// parseLogName is the inverse of logName. Anything else has no application.
func parseLogName(name, kind string) (app string, pid int) {
	app, process, _ := strings.Cut(name, "-metrics."+kind)
	if process != "" {
		pid, _ = strconv.Atoi(strings.TrimPrefix(process, ".pid"))
	}
	if app == "" || strings.Contains(app, ".") || !utf8.ValidString(app) || logName(app, kind, pid) != name {
		return "", 0
	}
	return app, pid
}

// parseSegment is the inverse of name. It reports false for the name of anything else.
func parseSegment(name, kind string) (s segment, ok bool) {
	rest := name
	if i := strings.LastIndexByte(rest, '.'); i >= 0 && number(rest[i+1:]) > 0 {
		rest, s.n = rest[:i], number(rest[i+1:])
	}
	i := strings.LastIndexByte(rest, '.')
	if i < 0 {
		return segment{}, false
	}
	s.log, s.date = rest[:i], rest[i+1:]
	_, err := time.Parse(time.DateOnly, s.date)
	app, _ := parseLogName(s.log, kind)
	return s, err == nil && app != ""
}

// span is which seconds can be in the file, by its date: a day somewhere on earth, and some hours for logs that take
// no notice of daylight saving time. What is of another time is out of place.
func (s segment) span() (from, to int64) {
	day, _ := time.Parse(time.DateOnly, s.date)
	const hour = 3600
	return day.Unix() - 16*hour, day.Unix() + 40*hour
}

// number is the number that stands there as Itoa writes it; 0 if none does.
func number(s string) int {
	if n, err := strconv.Atoi(s); err == nil && strconv.Itoa(n) == s {
		return n
	}
	return 0
}

// segments lists the files of the logs of a kind that are wanted, oldest first. The order is that of their first
// seconds: that of the dates in the names is another one where the time zone was changed. It costs a look into every file.
func segments(dir, kind string, wanted func(log string) bool) ([]segment, error) {
	all, err := named(dir, kind, wanted)
	if err == nil && gap(all) {
		all, err = named(dir, kind, wanted)
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		s := &all[i]
		if s.first, s.known = firstSecond(dir, *s, formatOf(kind)); s.known {
			continue
		}
		s.first, _ = s.span()
		if i > 0 && all[i-1].log == s.log {
			s.first = max(s.first, all[i-1].first)
		}
	}
	slices.SortStableFunc(all, func(a, b segment) int { return cmp.Compare(a.first, b.first) })
	return all, nil
}

// named lists the files by log, date and number. A file that is begun meanwhile may be missing, and one that is begun
// after it be there.
func named(dir, kind string, wanted func(log string) bool) (all []segment, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if s, ok := parseSegment(e.Name(), kind); ok && e.Type().IsRegular() && wanted(s.log) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b segment) int {
		return cmp.Or(strings.Compare(a.log, b.log), strings.Compare(a.date, b.date), a.n-b.n)
	})
	return all, err
}

// gap reports whether a number is missing between two of a day.
func gap(all []segment) bool {
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.log == b.log && a.date == b.date && b.n > a.n+1 {
			return true
		}
	}
	return false
}

// firstSecond is the first second of a file. It reports false if there is none near its beginning.
func firstSecond(dir string, s segment, f format) (int64, bool) {
	file, err := os.Open(filepath.Join(dir, s.name()))
	if err != nil {
		return 0, false
	}
	defer file.Close() //nolint:errcheck // it was only read
	from, to := s.span()
	for _, size := range []int{maxStamp, maxLine} { // mostly, the first line is one
		room := make([]byte, size)
		n, _ := file.ReadAt(room, 0)
		for b := room[:n]; len(b) > 0; {
			if second, ok := f.second(b); ok && second >= from && second < to {
				return second, true
			}
			_, rest, _ := bytes.Cut(b, []byte("\n"))
			b = rest
		}
	}
	return 0, false
}
