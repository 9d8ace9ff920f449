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

// segment describes a data file of a log. A log is the sequence of segments that one process at a time writes. The file
// name determines log, app, pid, date and n; readEnds reads the other fields from the file.
//
//	field  in shop-metrics.log.pid12.2026-01-02.3
//	-----  --------------------------------------
//	log    shop-metrics.log.pid12
//	app    shop
//	pid    12
//	date   2026-01-02
//	n      3
type segment struct {
	log  string // prefix of the file names, such as shop-metrics.log or shop-metrics.log.pid12
	app  string // application, as in log
	pid  int    // process ID, as in log; 0 without one
	date string // yyyy-MM-dd
	n    int    // number within the day; 0 for the first segment, whose name has no number

	// first is the Unix time of the first second. In a segment without a readable second it is the first of the
	// preceding segment, which keeps the order.
	first int64
	last  int64 // Unix time of the last complete second; 0 if none can be read
	err   error // result of readEnds
}

const (
	idxSuffix  = ".idx"
	lockSuffix = ".lck"
)

// name returns the name of the file.
func (s segment) name() string {
	if s.n == 0 {
		return s.log + "." + s.date
	}
	return s.log + "." + s.date + "." + strconv.Itoa(s.n)
}

// fileName returns the application's name in file names. Dots become dashes, as in Sentinel, because dots separate the
// parts of a file name.
func fileName(app string) string { return strings.ReplaceAll(app, ".", "-") }

// logName returns the prefix of the file names of an application's log, without a process ID.
func logName(app string) string { return fileName(app) + "-metrics.log" }

// segmentName matches names of segments: the log, the date, and a number unless the segment is the first of the day.
var segmentName = regexp.MustCompile(`^(([^.\n]+)-metrics\.log(?:\.pid([1-9]\d{0,17}))?)` +
	`\.(\d{4}-\d\d-\d\d)(?:\.([1-9]\d{0,8}))?$`)

// parseSegment is the inverse of name. It returns false for names of other files.
func parseSegment(name string) (s segment, ok bool) {
	m := segmentName.FindStringSubmatch(name)
	if m == nil || !utf8.ValidString(name) {
		return segment{}, false
	}
	s.log, s.app, s.date = m[1], m[2], m[4]
	s.pid, _ = strconv.Atoi(m[3]) // 0 without a process ID
	s.n, _ = strconv.Atoi(m[5])
	_, err := time.Parse(time.DateOnly, s.date)
	return s, err == nil
}

// span returns the range [from, to) of seconds that the segment may have: its date in any time zone, extended by a few
// hours for logs that ignore daylight saving time. Lines of other seconds are skipped.
func (s segment) span() (from, to int64) {
	day, _ := time.Parse(time.DateOnly, s.date)
	const hour = 3600
	return day.Unix() - 16*hour, day.Unix() + 40*hour
}

// segments lists the segments that accept selects, sorted by log and first second. The order of the dates may differ,
// if the time zone was changed. segments reads both ends of every file.
func segments(dir string, accept func(segment) bool) ([]segment, error) {
	all, err := segmentsByName(dir, accept)
	if err == nil && hasGap(all) { // a segment was created during the call
		all, err = segmentsByName(dir, accept)
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
	slices.SortStableFunc(all, func(a, b segment) int {
		return cmp.Or(strings.Compare(a.log, b.log), cmp.Compare(a.first, b.first))
	})
	return all, nil
}

// segmentsByName lists the segments that accept selects, sorted by log, date and number. A segment that is created
// during the call may be missing from the list, even if a later one is in it.
func segmentsByName(dir string, accept func(segment) bool) (all []segment, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if s, ok := parseSegment(e.Name()); ok && e.Type().IsRegular() && accept(s) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b segment) int {
		return cmp.Or(strings.Compare(a.log, b.log), strings.Compare(a.date, b.date), a.n-b.n)
	})
	return all, err
}

// hasGap reports whether the numbers of a day have a gap.
func hasGap(all []segment) bool {
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.log == b.log && a.date == b.date && b.n > a.n+1 {
			return true
		}
	}
	return false
}

// readEnds sets s.first and s.last, if these seconds are near the ends of the file.
func (s *segment) readEnds(dir string) error {
	o, err := openSegment(dir, *s)
	if err != nil {
		return err
	}
	defer o.Close() //nolint:errcheck // opened for reading only
	s.first = o.firstSecond()
	_, s.last, err = o.completeEnd(false)
	return err
}
