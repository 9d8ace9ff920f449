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

// Source says which rows of which logs are wanted, in the words of a user.
type Source struct {
	// Dirs are the directories of the logs, App the application, all if empty, and PIDs are processes, all if empty.
	Dirs []string
	App  string
	PIDs []int
	// From and To are times, see [TimeHelp], both included: by default a quarter of an hour before To, and now.
	From, To string
	// Zone is the time zone of times that are given and printed.
	Zone *time.Location
	// Resources are patterns: a name must match one of them. All match if there are none.
	Resources []Pattern
	// Follow goes on with rows as they are logged, from now on unless From is given. The logs need not exist yet.
	Follow bool
	// OneApp makes logs of several applications an error.
	OneApp bool
}

// defaultRange is how long a range is if only its end is known.
const defaultRange = 15 * time.Minute

// Selection is a directory of a Source that was read: what [metriclog.Searcher] needs to find the rows, and what a user is told about them. The commands
// log, report and verify choose rows by the same flags, and so by the same Selection.
type Selection struct {
	Searcher metriclog.Searcher
	// Query has the range, whose end is zero with Follow. Its Match is made of Resources, and is not safe for concurrent use.
	metriclog.Query
	Zone      *time.Location
	Resources []Pattern

	seen    map[string]bool // names that Match was asked about
	several bool            // there may be rows of several logs
}

// maxSeen bounds the names that are remembered.
const maxSeen = 10_000

// Select reads a Source at a time: a Selection for each directory, and one at least. The error has everything that is wrong with the
// Source; the Selections have what could be read.
func Select(o Source, now time.Time) (all []*Selection, err error) {
	if len(o.Dirs) == 0 {
		o.Dirs = []string{""} // which is an error
	}
	for _, dir := range o.Dirs {
		s := &Selection{
			Searcher: metriclog.Searcher{Dir: dir, App: o.App}, Query: metriclog.Query{PIDs: o.PIDs},
			Zone: o.Zone, Resources: o.Resources, seen: map[string]bool{},
		}
		if len(o.Resources) > 0 {
			s.Match = func(name string) bool {
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

// setRange reads from when to when. Of what can mean several seconds, the first is the beginning and the last the end.
func (s *Selection) setRange(o Source, now time.Time) error {
	var errs []error
	var from, to ends
	var err error
	if o.From != "" {
		if from, err = parseTime(o.From, now, time.Time{}, s.Zone); err != nil {
			errs = append(errs, fmt.Errorf("--from: %w", err))
			from.first = now // to see what else is wrong
		}
	}
	// The end is known before the beginning, as that may be counted from it.
	if to, err = parseTime(cmp.Or(o.To, "now"), now, from.first, s.Zone); err != nil {
		errs = append(errs, fmt.Errorf("--to: %w", err))
	}
	switch {
	case o.From != "":
	case o.Follow:
		from.first = now.Truncate(time.Second)
	default:
		from.first = to.last.Add(-defaultRange)
	}
	// It is said only if both could be read.
	if len(errs) == 0 && from.first.After(to.last) {
		errs = append(errs, fmt.Errorf("--from: %s is after --to, %s", s.Time(from.first), s.Time(to.last)))
	}
	if s.From, s.To = from.first, to.last; o.Follow {
		s.To = time.Time{}
	}
	return errors.Join(errs...)
}

// Time shows a time in the selection's zone.
func (s *Selection) Time(t time.Time) string { return t.In(s.Zone).Format(TimeLayout) }

// checkLogs checks that there is something to search, or may be.
func (s *Selection) checkLogs(o Source) error {
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
		all, _ := metriclog.Searcher{Dir: dir}.Logs() // it could be read just now
		if len(all) == 0 {
			return fmt.Errorf("--dir: there are no metric logs in %s", dir)
		}
		return fmt.Errorf("--app: there is no log of %q in %s, but of %s", o.App, dir, List(apps(all)))
	}
	s.several = s.several || len(logs) > 1
	// A process may start after the command that follows its log.
	for _, pid := range o.PIDs {
		if !o.Follow && !slices.ContainsFunc(logs, func(l metriclog.Log) bool { return l.PID == pid }) {
			return fmt.Errorf("--pid: there is no log of process %d, but %s", pid, List(logs))
		}
	}
	if names := apps(logs); o.OneApp && len(names) > 1 {
		return fmt.Errorf("--app: needed to fill a gap, as there are logs of %s", List(names))
	}
	return nil
}

// apps returns the applications of logs, sorted.
func apps(logs []metriclog.Log) (names []string) {
	for _, l := range logs {
		names = append(names, l.App)
	}
	return slices.Compact(names)
}

// Malformed prints how many lines were left out, if any.
func (s *Selection) Malformed(stderr io.Writer, n int64) {
	if n > 0 {
		fmt.Fprintf(stderr, "windowstat: lines omitted because they are malformed or out of order: %d\n", n)
	}
}

// Empty prints that there were no rows of what was asked for, and what there is instead: rows that did not meet the conditions of
// --where, names that are near, and the first and the last second of the logs.
func (s *Selection) Empty(stderr io.Writer, where []Condition, rows int) {
	given := ""
	for _, p := range s.Resources {
		given += fmt.Sprintf(" --resource '%s'", Visible(p.text))
	}
	for _, c := range where {
		given += fmt.Sprintf(" --where '%s'", Visible(c.text))
	}
	says := []string{fmt.Sprintf("no rows from %s to %s%s", s.Time(s.From), s.Time(s.To), given)}
	// The reason that is nearest to what was asked for comes first.
	if rows > 0 {
		says = append(says, fmt.Sprintf("without --where there are %d", rows))
	} else if n := len(s.seen); n > 0 {
		says = append(says, fmt.Sprintf("this time has %d resources, the nearest are %s", n, List(nearest(s.seen, s.Resources[0].text))))
	}
	if first, last, err := s.Searcher.Span(s.PIDs...); err == nil && !first.IsZero() {
		says = append(says, fmt.Sprintf("the log is from %s to %s", s.Time(first), s.Time(last)))
	}
	fmt.Fprintf(stderr, "windowstat: %s\n", strings.Join(says, "; "))
}
