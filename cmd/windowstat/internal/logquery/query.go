// Package logquery searches the metric logs of a directory, as windowstat log does. It prints the rows of a range, rows
// as they are logged, or sums of rows, as a table, JSON, CSV or lines of the log.
//
// A query is a pipeline. It finds rows of single seconds ([Source], [Options].Where), adds them up (Step, Top,
// Summary), and prints them ([Options].Output). The options are the flags of the command, and errors name the flags.
//
// The stages pass on one row at a time, so a year of a log takes as much memory as a minute. Two maps grow: the sums,
// at most maxSummed, and the names that a pattern was applied to, at most maxSeen.
package logquery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Options has the options of a search.
type Options struct {
	// Source selects the rows.
	Source Source
	// Where has conditions. A row of a second must meet all of them.
	Where []Condition
	// Step, Top and Summary print sums of rows by application and resource, sorted by [Options].By in descending order.
	// Step prints sums for each step of the clock. Without it, the sums are over the range. Top is the maximum number
	// of resources in a step. Summary prints sums over the range with rates.
	Step    time.Duration
	Top     int
	Summary bool
	// By is the column for Top and for the busiest second.
	By *Column
	// Output is one of [Formats].
	Output string
}

// Query is a search. Create it with [New].
type Query struct {
	Options
	*Selection
	stderr io.Writer
}

// New returns a Query. Relative times are relative to now. Warnings go to stderr. The error has all errors in the
// options.
func New(o Options, now time.Time, stderr io.Writer) (*Query, error) {
	all, err := Select(o.Source, now)
	if len(all) > 1 {
		err = errors.Join(err, errors.New("--dir: only one directory can be searched"))
	}
	return &Query{Options: o, Selection: all[0], stderr: stderr}, errors.Join(err, o.check())
}

// check returns all errors in the options, and options that the output format does not support.
func (o *Options) check() error {
	var errs []error
	wrong := func(is bool, flag, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(flag+": "+format, args...))
		}
	}
	step := o.Step
	wrong(step != 0 && (step < time.Second || step > 24*time.Hour || step%time.Second != 0), "--step",
		"%s is not whole seconds, from 1s to 24h", step)
	wrong(o.Top < 0, "--top", "%d is not at least 1", o.Top)
	// The format sentinel prints lines of the log unchanged. Sums are not lines.
	wrong(o.sums() && formats[o.Output].time == "", "--format",
		"%s has lines of the log, and no sums of --step, --top and --summary", o.Output)
	return errors.Join(errs...)
}

// sums reports whether rows are added up.
func (o *Options) sums() bool { return o.Summary || o.Step != 0 || o.Top != 0 }

// Run prints the rows or sums. With Follow it runs until ctx ends.
func (q *Query) Run(ctx context.Context, stdout io.Writer) error {
	l := layout{zone: q.Zone, several: q.several, sums: q.sums()}
	if f, ok := stdout.(*os.File); ok {
		l.screen = term.IsTerminal(int(f.Fd()))
	}
	write := newLines(stdout, formats[q.Output], l).write
	// Sums over the range are read by people, so their table is aligned and has rates. Other tables are written line by
	// line.
	if l.sums && q.Step == 0 && q.Output == "table" {
		write = func(rows iter.Seq[*row]) error { return writeSummary(stdout, q.Zone, rows) }
	}
	if q.Source.Follow {
		return q.follow(ctx, write)
	}
	return q.search(ctx, write)
}

// search writes the rows of a range, or their sums.
func (q *Query) search(ctx context.Context, write func(iter.Seq[*row]) error) error {
	rows, err := q.Searcher.Search(q.Query)
	if err != nil {
		return err
	}
	// The stages pass on one row at a time. Only sums are kept.
	var result scan
	all := result.rows(ctx, q, rows)
	if q.sums() {
		all = added(all, q)
	}
	err = write(all)
	q.Malformed(q.stderr, rows.Malformed())
	if err := errors.Join(err, result.err, rows.Err()); err != nil {
		return err
	}
	if result.passed == 0 {
		q.Empty(q.stderr, q.Where, result.found)
	}
	return nil
}

// scan has the result of reading the rows of a search.
type scan struct {
	found, passed int
	err           error // of reading or of the context
}

// rows yields the rows that meet all conditions, until ctx ends, and closes the search. A row is valid until the next
// one.
func (s *scan) rows(ctx context.Context, q *Query, rows *metriclog.Rows) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		defer rows.Close() //nolint:errcheck // closing after reading loses nothing
		// enough ends Each when the consumer stops.
		enough := errors.New("enough")
		var next row
		err := rows.Each(ctx, func(r *metriclog.Row) error {
			s.found++
			if slices.ContainsFunc(q.Where, func(c Condition) bool { return !c.meets(r) }) {
				return nil
			}
			s.passed++
			if next.Row, next.line = r, rows.Line(); !yield(&next) {
				return enough
			}
			return nil
		})
		if err != enough {
			s.err = err
		}
	}
}

// followInterval is the time between two searches for new rows.
const followInterval = 250 * time.Millisecond

// follow prints each row once, when it is logged, until ctx ends. It prints an error only when the error changes.
func (q *Query) follow(ctx context.Context, write func(iter.Seq[*row]) error) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	query := q.Query
	// Repeating an error every quarter of a second would hide the rows.
	lastErr, malformed := "", int64(0)
	q.warnAbsent()
	for {
		rows, err := q.Searcher.Search(query)
		if err == nil {
			if err := write(new(scan).rows(ctx, q, rows)); err != nil {
				return err
			}
			query.After = rows.Position()
			// Each search reads the lines after the last row again. Count their malformed lines only once.
			q.Malformed(q.stderr, rows.Malformed()-malformed)
			malformed = rows.Malformed()
			err = rows.Err()
		}
		message := ""
		switch {
		case errors.Is(err, fs.ErrNotExist):
			message = "waiting for the directory " + q.Searcher.Dir
		case err != nil:
			message = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if message != "" && message != lastErr {
			fmt.Fprintf(q.stderr, "windowstat: %s\n", message)
		}
		lastErr = message
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// warnAbsent warns if the application or process has no log yet, and lists the existing logs. A name may be misspelled.
func (q *Query) warnAbsent() {
	logs, err := q.Searcher.Logs()
	selected := func(l metriclog.Log) bool { return len(q.PIDs) == 0 || slices.Contains(q.PIDs, l.PID) }
	if err != nil || q.Searcher.App == "" && len(q.PIDs) == 0 || slices.ContainsFunc(logs, selected) {
		return
	}
	has := "no logs"
	if all, err := (metriclog.Searcher{Dir: q.Searcher.Dir}).Logs(); err == nil && len(all) > 0 {
		has = "logs of " + List(all)
	}
	fmt.Fprintf(q.stderr, "windowstat: waiting for a log; %s has %s\n", q.Searcher.Dir, has)
}
