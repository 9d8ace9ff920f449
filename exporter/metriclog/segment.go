package metriclog

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// segment is one data file of a log, identified by its name. A log is the sequence of files that one process writes.
type segment struct {
	log  string // prefix of file names: shop-metrics.log, or shop-metrics.log.pid12
	app  string // of the log's name
	pid  int    // of the log's name; 0 if it has none
	date string // yyyy-MM-dd
	n    int    // 0 for the first of the day, which has no number

	// first is the Unix time of its first second; without one that can be read, that of the file before, so that the order stays.
	first int64
	last  int64 // Unix time of its last complete second; 0 if none can be read
	err   error // of reading the file
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

// logName returns the prefix of the file names of an application's log that is not one of several processes.
func logName(app string) string { return fileName(app) + "-metrics.log" }

// segmentName is the name of a data file: that of the log, the date, and a number if it is not the first of the day.
var segmentName = regexp.MustCompile(`^(([^.\n]+)-metrics\.log(?:\.pid([1-9]\d{0,17}))?)\.(\d{4}-\d\d-\d\d)(?:\.([1-9]\d{0,8}))?$`)

// parseSegment is the inverse of name. It reports false for other names.
func parseSegment(name string) (s segment, ok bool) {
	m := segmentName.FindStringSubmatch(name)
	if m == nil || !utf8.ValidString(name) {
		return segment{}, false
	}
	s.log, s.app, s.date = m[1], m[2], m[4]
	s.pid, _ = strconv.Atoi(m[3]) // 0 if there is none
	s.n, _ = strconv.Atoi(m[5])
	_, err := time.Parse(time.DateOnly, s.date)
	return s, err == nil
}

// span returns the seconds that may be in the file: its date in any time zone, and some hours for logs that ignore daylight
// saving time. Lines of other seconds are skipped.
func (s segment) span() (from, to int64) {
	day, _ := time.Parse(time.DateOnly, s.date)
	const hour = 3600
	return day.Unix() - 16*hour, day.Unix() + 40*hour
}

// segments lists the files of the logs that wanted accepts, by log and first second. Dates in names may be in another order, if
// the time zone was changed. It reads both ends of every file.
func segments(dir string, wanted func(segment) bool) ([]segment, error) {
	all, err := segmentsByName(dir, wanted)
	if err == nil && hasGap(all) {
		all, err = segmentsByName(dir, wanted)
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		s := &all[i]
		s.err = s.readEnds(dir)
		if s.first == 0 && i > 0 && all[i-1].log == s.log {
			s.first = all[i-1].first
		}
	}
	slices.SortStableFunc(all, func(a, b segment) int { return cmp.Or(strings.Compare(a.log, b.log), cmp.Compare(a.first, b.first)) })
	return all, nil
}

// segmentsByName lists the files by log, date and number. Files that are made during the call may be missing, even if a later
// one is listed.
func segmentsByName(dir string, wanted func(segment) bool) (all []segment, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if s, ok := parseSegment(e.Name()); ok && e.Type().IsRegular() && wanted(s) {
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

// readEnds reads the first and the last second, if they are near the ends of the file.
func (s *segment) readEnds(dir string) error {
	o, err := openSegment(dir, *s)
	if err != nil {
		return err
	}
	defer o.Close() //nolint:errcheck // it was only read
	s.first = o.firstSecond()
	_, s.last, err = o.completeEnd(false)
	return err
}
