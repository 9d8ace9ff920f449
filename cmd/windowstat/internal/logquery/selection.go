package logquery

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Source selects rows of one or more logs. The flags of a command set its fields, and [Select] checks them.
//
// Source keeps times as texts, because their meaning depends on Zone, on the current time and on each other.
type Source struct {
	// Dirs has the directories of the logs. App selects an application, and PIDs selects processes. Without App, all
	// applications are selected; without PIDs, all processes.
	Dirs []string
	App  string
	PIDs []int
	// From and To are the first and the last second, see [TimeHelp]. If To is empty, it is now. If From is empty, it is
	// 15 minutes before To.
	From, To string
	// Zone is the time zone of times in flags and output.
	Zone *time.Location
	// Resources selects the resources whose name matches one of the patterns. Without patterns, all resources are
	// selected.
	Resources []Pattern
	// Follow selects new rows as they are logged, from now on unless From is set. The logs need not exist yet.
	Follow bool
	// OneApp makes it an error if the directory has logs of several applications and App selects none of them.
	OneApp bool
}

// defaultRange is the length of the range if From is empty.
const defaultRange = 15 * time.Minute

// Selection is the parsed Source for one directory. It has the searcher and the query for the rows, and prints messages
// about the result. All commands that read the metric log use it.
type Selection struct {
	// Searcher opens the files of the directory. It finds rotated files by itself.
	Searcher metriclog.Searcher
	// Query has the range. With Follow its end is zero. Its function Match applies Resources, and is not safe for
	// concurrent use.
	metriclog.Query
	Zone      *time.Location
	Resources []Pattern

	// Match fills seen, so seen stays empty without patterns.
	seen    map[string]bool // names that were passed to Match, for hints
	several bool            // the rows may be from several logs
}

// maxSeen is the maximum number of names in Selection.seen.
const maxSeen = 10_000

// Select parses a Source. It returns a Selection for each directory, and at least one. The error joins all errors in
// the Source. After an error, the Selections have the parts that are valid, so that a caller can find more errors.
func Select(o Source, now time.Time) (all []*Selection, err error) {
	if len(o.Dirs) == 0 {
		o.Dirs = []string{""} // checkLogs reports it
	}
	for _, dir := range o.Dirs {
		s := &Selection{
			Searcher: metriclog.Searcher{Dir: dir, App: o.App}, Query: metriclog.Query{PIDs: o.PIDs},
			Zone: o.Zone, Resources: o.Resources, seen: map[string]bool{},
		}
		if len(o.Resources) > 0 {
			s.Match = func(name string) bool {
				// The names are only hints. A log with more names than maxSeen must not take unlimited memory.
				if len(s.seen) < maxSeen {
					s.seen[name] = true
				}
				return slices.ContainsFunc(s.Resources, func(p Pattern) bool { return p.matches(name) })
			}
		}
		all, err = append(all, s), errors.Join(err, s.setRange(o, now), s.checkLogs(o))
	}
	return all, err
}

// ParseRange parses the first and the last second of a range, as --from and --to give them; see [TimeHelp]. An empty
// text sets no limit, and its result is the zero Time. A text such as 2026-01-02 means several seconds: first is the
// first of them, and last is the last. The error names the flags.
func ParseRange(from, to string, now time.Time, zone *time.Location) (first, last time.Time, err error) {
	var errs []error
	if from != "" {
		x, err := parseTime(from, now, time.Time{}, zone)
		if err != nil {
			errs = append(errs, fmt.Errorf("--from: %w", err))
		}
		// A text such as 2026-01-02 means several seconds: --from takes the first of them, and --to takes the last.
		first = x.first
	}
	if to != "" {
		x, err := parseTime(to, now, first, zone)
		if err != nil {
			errs = append(errs, fmt.Errorf("--to: %w", err))
		}
		last = x.last
	}
	if len(errs) == 0 && to != "" && first.After(last) {
		errs = append(errs, fmt.Errorf("--from: %s is after --to, %s", from, to))
	}
	return first, last, errors.Join(errs...)
}

// setRange parses From and To, and sets their defaults. If a text means several seconds, From is the first of them and
// To the last.
func (s *Selection) setRange(o Source, now time.Time) error {
	var errs []error
	var from, to ends
	var err error
	if o.From != "" {
		if from, err = parseTime(o.From, now, time.Time{}, s.Zone); err != nil {
			errs = append(errs, fmt.Errorf("--from: %w", err))
			from.first = now // continue, to find errors in To
		}
	}
	// Parse --to before the default of --from is set, because this default depends on --to.
	if to, err = parseTime(cmp.Or(o.To, "now"), now, from.first, s.Zone); err != nil {
		errs = append(errs, fmt.Errorf("--to: %w", err))
	}
	switch {
	// A given --from needs no default.
	case o.From != "":
	case o.Follow:
		// New rows begin with the current second. Its row is written after the second ends.
		from.first = now.Truncate(time.Second)
	default:
		from.first = to.last.Add(-defaultRange)
	}
	// Compare valid times only.
	if len(errs) == 0 && from.first.After(to.last) {
		errs = append(errs, fmt.Errorf("--from: %s is after --to, %s", s.Time(from.first), s.Time(to.last)))
	}
	// A zero end means that the range never ends.
	if s.From, s.To = from.first, to.last; o.Follow {
		s.To = time.Time{}
	}
	return errors.Join(errs...)
}

// Time formats a time in the zone of the selection.
func (s *Selection) Time(t time.Time) string { return t.In(s.Zone).Format(TimeLayout) }

// checkLogs returns an error if the directory has no logs of the application or of the processes. With Follow they may
// be absent. It also finds out whether rows may be from several logs.
func (s *Selection) checkLogs(o Source) error {
	// With --follow, another application may start to log later, after the header was printed. So decide now.
	s.several = o.Follow && o.App == ""
	dir := s.Searcher.Dir
	if dir == "" {
		return errors.New("--dir: the directory of the log is needed")
	}
	logs, err := s.Searcher.Logs()
	switch {
	case errors.Is(err, os.ErrNotExist) && o.Follow:
		return nil
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("--dir: there is no %s", dir)
	case err != nil:
		return fmt.Errorf("--dir: %w", err)
	}
	if len(logs) == 0 && !o.Follow {
		all, _ := metriclog.Searcher{Dir: dir}.Logs() // the directory was readable just now
		if len(all) == 0 {
			return fmt.Errorf("--dir: there are no metric logs in %s", dir)
		}
		return fmt.Errorf("--app: there is no log of %q in %s; there are logs of %s", o.App, dir, List(apps(all)))
	}
	s.several = s.several || len(logs) > 1
	// With Follow, a process may start later.
	for _, pid := range o.PIDs {
		if !o.Follow && !slices.ContainsFunc(logs, func(l metriclog.Log) bool { return l.PID == pid }) {
			return fmt.Errorf("--pid: there is no log of process %d; there are %s", pid, List(logs))
		}
	}
	// A database has the series of one application under the given labels. Rows of several applications would be mixed
	// up.
	if names := apps(logs); o.OneApp && len(names) > 1 {
		return fmt.Errorf("--app: required, because there are logs of %s", List(names))
	}
	return nil
}

// apps returns the names of the applications in alphabetical order. logs must be sorted.
func apps(logs []metriclog.Log) (names []string) {
	for _, l := range logs {
		names = append(names, l.App)
	}
	return slices.Compact(names)
}

// Malformed prints the number of omitted lines, unless it is 0.
func (s *Selection) Malformed(stderr io.Writer, n int64) {
	if n > 0 {
		fmt.Fprintf(stderr, "windowstat: lines omitted because they are malformed or out of order: %d\n", n)
	}
}

// Empty prints that the search found no row, with the hints that it has: the number of rows without --where, similar
// names of resources, and the first and the last second of the logs.
func (s *Selection) Empty(stderr io.Writer, where []Condition, rows int) {
	// The message repeats the flags, so the user sees which filter removed the rows.
	given := ""
	for _, p := range s.Resources {
		given += fmt.Sprintf(" --resource '%s'", Visible(p.text))
	}
	for _, c := range where {
		given += fmt.Sprintf(" --where '%s'", Visible(c.text))
	}
	text := []string{fmt.Sprintf("no rows from %s to %s%s", s.Time(s.From), s.Time(s.To), given)}
	// The most specific hint comes first: the conditions exclude all rows, or else no name matches.
	if rows > 0 {
		text = append(text, fmt.Sprintf("without --where there are %d", rows))
	} else if n := len(s.seen); n > 0 {
		text = append(text, fmt.Sprintf("the range has %d resources, the most similar are %s", n, List(nearest(s.seen,
			s.Resources[0].text))))
	}
	if first, last, err := s.Searcher.Span(s.PIDs...); err == nil && !first.IsZero() {
		text = append(text, fmt.Sprintf("the log is from %s to %s", s.Time(first), s.Time(last)))
	}
	fmt.Fprintf(stderr, "windowstat: %s\n", strings.Join(text, "; "))
}
