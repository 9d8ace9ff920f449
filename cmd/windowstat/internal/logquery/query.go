// Package logquery searches the metric logs of a directory, as windowstat log does: the rows of a range or those that are being
// logged, or their sums, as a table, JSON, CSV or the lines of the log.
//
// A query is a pipeline: rows of single seconds are found ([Source], [Options].Where), added up (Step, Top, Summary), the last
// are kept (Tail), and they are printed ([Options].Output). Errors name the flags of the command, which the options are.
//
// Rows go through it one at a time, as they are read, so that a year of a log takes no more memory than a minute. What is held is bounded:
// sums by maxSummed, the last rows by how many are wanted, and the names that a pattern was asked about by maxSeen.
package logquery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Options are what is wanted of the logs.
type Options struct {
	// Source is which rows are read.
	Source Source
	// Where are conditions that a row of a second must all meet.
	Where []Condition
	// Step, Top and Summary print sums of rows by application and resource, the most in [Options].By first: of each step of the
	// clock, or, without Step, of the whole range. With Top, only so many resources of a step are printed. Summary is all of the
	// range, with its rates.
	Step    time.Duration
	Top     int
	Summary bool
	// By is the column of Top and of the busiest second.
	By *Column
	// Output is one of [Formats].
	Output string
}

// Query is a search that can be run. It must be made with [New].
type Query struct {
	Options
	*Selection
	stderr io.Writer
}

// New makes a Query at a time, from which relative times are counted. Warnings go to stderr. The error has everything that is
// wrong with the options.
func New(o Options, now time.Time, stderr io.Writer) (*Query, error) {
	all, err := Select(o.Source, now)
	if len(all) > 1 {
		err = errors.Join(err, errors.New("--dir: only one directory can be searched"))
	}
	return &Query{Options: o, Selection: all[0], stderr: stderr}, errors.Join(err, o.check())
}

// check returns what is wrong with the options, and what the output cannot show.
func (o *Options) check() error {
	var errs []error
	wrong := func(is bool, flag, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(flag+": "+format, args...))
		}
	}
	wrong(o.Step != 0 && (o.Step < time.Second || o.Step > 24*time.Hour || o.Step%time.Second != 0), "--step", "%s is not whole seconds, from 1s to 24h", o.Step)
	wrong(o.Top < 0, "--top", "%d is not at least 1", o.Top)
	// What an output can show decides which options go with it.
	wrong(o.sums() && formats[o.Output].time == "", "--format", "%s has the lines of the log, and no sums as with --step, --top and --summary", o.Output)
	return errors.Join(errs...)
}

// sums reports whether rows are added up.
func (o *Options) sums() bool { return o.Summary || o.Step != 0 || o.Top != 0 }

// Run prints what is wanted, with Follow until ctx ends.
func (q *Query) Run(ctx context.Context, stdout io.Writer) error {
	l := layout{zone: q.Zone, several: q.several, sums: q.sums()}
	write := newLines(stdout, formats[q.Output], l).write
	// One step over the range is read by people and not compared line by line, so its table is aligned and has rates.
	if l.sums && q.Step == 0 && q.Output == "table" {
		write = func(rows iter.Seq[*row]) error { return writeSummary(stdout, q.Zone, rows) }
	}
	if q.Source.Follow {
		return q.follow(ctx, write)
	}
	return q.search(ctx, write)
}

// search writes the rows of a range, through what is made of them.
func (q *Query) search(ctx context.Context, write func(iter.Seq[*row]) error) error {
	rows, err := q.Searcher.Search(q.Query)
	if err != nil {
		return err
	}
	// Each stage takes rows and yields rows, one at a time: only sums and the last rows are held.
	var w wanted
	all := w.rows(ctx, q, rows)
	if q.sums() {
		all = added(all, q)
	}
	err = write(all)
	q.Malformed(q.stderr, rows.Malformed())
	if err := errors.Join(err, w.err, rows.Err()); err != nil {
		return err
	}
	if w.passed == 0 {
		q.Empty(q.stderr, q.Where, w.found)
	}
	return nil
}

// wanted is what came of looking through the rows of a search.
type wanted struct {
	found, passed int
	err           error // of the context
}

// rows yields the rows that meet all conditions, until ctx ends, and closes the search. Each is valid until the next one.
func (w *wanted) rows(ctx context.Context, q *Query, rows *metriclog.Rows) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		defer rows.Close() //nolint:errcheck // they were only read
		// It stands for the end of a loop that has had enough.
		enough := errors.New("enough")
		var next row
		err := rows.Each(ctx, func(r *metriclog.Row) error {
			w.found++
			if slices.ContainsFunc(q.Where, func(c Condition) bool { return !c.meets(r) }) {
				return nil
			}
			w.passed++
			if next.Row, next.line = r, rows.Line(); !yield(&next) {
				return enough
			}
			return nil
		})
		if err != enough {
			w.err = err
		}
	}
}

// followInterval is how often the log is read for new rows.
const followInterval = 250 * time.Millisecond

// follow prints rows as they are logged, each once, until ctx ends. An error is printed once, while it lasts.
func (q *Query) follow(ctx context.Context, write func(iter.Seq[*row]) error) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	query := q.Query
	// The same error every quarter of a second would hide the rows.
	lastErr, malformed := "", int64(0)
	q.warnAbsent()
	for {
		rows, err := q.Searcher.Search(query)
		if err == nil {
			if err := write(new(wanted).rows(ctx, q, rows)); err != nil {
				return err
			}
			query.After = rows.Position()
			// The lines behind the last row are read again each time.
			q.Malformed(q.stderr, rows.Malformed()-malformed)
			malformed = rows.Malformed()
			err = rows.Err()
		}
		now := ""
		switch {
		case errors.Is(err, fs.ErrNotExist):
			now = q.Searcher.Dir + " is not there; waiting for it"
		case err != nil:
			now = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if now != "" && now != lastErr {
			fmt.Fprintf(q.stderr, "windowstat: %s\n", now)
		}
		lastErr = now
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// warnAbsent prints that there is no log yet of the application or process, and which logs there are: the name may be a
// mistake.
func (q *Query) warnAbsent() {
	logs, err := q.Searcher.Logs()
	wanted := func(l metriclog.Log) bool { return len(q.PIDs) == 0 || slices.Contains(q.PIDs, l.PID) }
	if err != nil || q.Searcher.App == "" && len(q.PIDs) == 0 || slices.ContainsFunc(logs, wanted) {
		return
	}
	has := "none"
	if all, err := (metriclog.Searcher{Dir: q.Searcher.Dir}).Logs(); err == nil && len(all) > 0 {
		has = List(all)
	}
	fmt.Fprintf(q.stderr, "windowstat: waiting for a log that is not there yet; in %s there is %s\n", q.Searcher.Dir, has)
}
