package metriclog

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// segment is one data file of a log, identified by its name. A log is the sequence of files that one process writes.
type segment struct {
	log   string // prefix of file names: shop-metrics.log, or shop-metrics.log.pid12
	date  string // yyyy-MM-dd
	n     int    // 0 for the first of the day, which has no number
	first int64  // Unix time of its first second
	known bool   // first is exact, not a lower bound
	ended bool   // a later file of the log has begun
}

const (
	idxSuffix  = ".idx"
	lockSuffix = ".lck"
)

// name is the name of the file.
func (s segment) name() string {
	if s.n == 0 {
		return s.log + "." + s.date
	}
	return s.log + "." + s.date + "." + strconv.Itoa(s.n)
}

// fileName returns the application's name as in file names: dots, which separate fields there, become dashes, as in Sentinel.
func fileName(app string) string { return strings.ReplaceAll(app, ".", "-") }

// logName returns the prefix of a log's file names. pid is 0 for none.
func logName(app string, pid int) string {
	name := fileName(app) + "-metrics.log"
	if pid != 0 {
		name += ".pid" + strconv.Itoa(pid)
	}
	return name
}

// parseLogName is the inverse of logName. app is empty for other names.
func parseLogName(name string) (app string, pid int) {
	app, process, _ := strings.Cut(name, "-metrics.log")
	if process != "" {
		pid, _ = strconv.Atoi(strings.TrimPrefix(process, ".pid"))
	}
	if app == "" || strings.Contains(app, ".") || !utf8.ValidString(app) || logName(app, pid) != name {
		return "", 0
	}
	return app, pid
}

// segmentName is the name of a data file: that of the log, the date, and a number if it is not the first of the day.
var segmentName = regexp.MustCompile(`^(.*)\.(\d{4}-\d\d-\d\d)(?:\.([1-9]\d{0,8}))?$`)

// parseSegment is the inverse of name. It reports false for other names.
func parseSegment(name string) (s segment, ok bool) {
	m := segmentName.FindStringSubmatch(name)
	if m == nil {
		return segment{}, false
	}
	s.log, s.date = m[1], m[2]
	s.n, _ = strconv.Atoi(m[3]) // 0 if there is none
	_, err := time.Parse(time.DateOnly, s.date)
	app, _ := parseLogName(s.log)
	return s, err == nil && app != ""
}

// span returns the seconds that may be in the file: its date in any time zone, and some hours for logs that ignore daylight
// saving time. Lines of other seconds are skipped.
func (s segment) span() (from, to int64) {
	day, _ := time.Parse(time.DateOnly, s.date)
	const hour = 3600
	return day.Unix() - 16*hour, day.Unix() + 40*hour
}

// segments lists the files of the logs that wanted accepts, by their first seconds. Dates in names may be in another order, if
// the time zone was changed. It reads the beginning of every file.
func segments(dir string, wanted func(log string) bool) ([]segment, error) {
	all, err := segmentsByName(dir, wanted)
	if err == nil && hasGap(all) {
		all, err = segmentsByName(dir, wanted)
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		s := &all[i]
		if s.first, s.known = firstSecond(dir, *s); s.known {
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

// segmentsByName lists the files by log, date and number. Files that are made during the call may be missing, even if a later
// one is listed.
func segmentsByName(dir string, wanted func(log string) bool) (all []segment, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if s, ok := parseSegment(e.Name()); ok && e.Type().IsRegular() && wanted(s.log) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b segment) int {
		return cmp.Or(strings.Compare(a.log, b.log), strings.Compare(a.date, b.date), a.n-b.n)
	})
	return all, err
}

// hasGap reports whether a number of a day is missing.
func hasGap(all []segment) bool {
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.log == b.log && a.date == b.date && b.n > a.n+1 {
			return true
		}
	}
	return false
}

// firstSecond returns the first second of a file. It reports false if there is none near the beginning.
func firstSecond(dir string, s segment) (int64, bool) {
	file, err := os.Open(filepath.Join(dir, s.name()))
	if err != nil {
		return 0, false
	}
	defer file.Close() //nolint:errcheck // it was only read
	from, to := s.span()
	for _, size := range []int{maxStamp, maxLine} { // mostly the first line is valid
		scratch := make([]byte, size)
		n, _ := file.ReadAt(scratch, 0)
		for b := scratch[:n]; len(b) > 0; {
			if second, ok := secondOf(b); ok && second >= from && second < to {
				return second, true
			}
			_, rest, _ := bytes.Cut(b, []byte("\n"))
			b = rest
		}
	}
	return 0, false
}
