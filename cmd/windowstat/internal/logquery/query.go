// Package logquery searches the metric logs of a directory, as windowstat log does. It prints the rows of a range, new
// rows as they are logged, or sums of rows, as a table, JSON, CSV or lines of the log.
//
// A query is a pipeline of three stages:
//
//	rows of seconds               →  sums                 →  lines of output
//	Source, Where                    Step, Top, Summary      Output
//	selection.go, names.go,          sums.go                 rows.go
//	times.go, columns.go
//
// The options are the flags of the command, and errors name the flags. Other commands use the first stage alone
// ([Select]), or the sums alone ([Summary]).
//
// The stages pass on one row at a time, so a year of a log takes as much memory as a minute. Two maps grow, both up to
// a limit: the sums, up to maxSummed, and the names that were compared with a pattern, up to maxSeen.
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

// Options has the options of a search. The flags of windowstat log set them.
type Options struct {
	// Source selects the rows.
	Source Source
	// Where has conditions. A row is printed or added only if it meets all of them.
	Where []Condition
	// Step, Top and Summary replace the rows by sums, for each application and resource, in descending order of By.
	// Step prints sums for each step of the clock; without Step, the sums are over the range. Top limits the number of
	// resources in a step. Summary prints a table of the range with rates.
	Step    time.Duration
	Top     int
	Summary bool
	// By is the column that sorts sums, and whose highest second is printed with them.
	By *Column
	// Output is one of [Formats].
	Output string
}

// Query is a search with checked options. Create it with [New].
type Query struct {
	Options
	*Selection
	stderr io.Writer
}

// New returns a Query. Relative times in o are relative to now. The Query prints warnings to stderr. The error joins
// all errors in the options.
func New(o Options, now time.Time, stderr io.Writer) (*Query, error) {
	all, err := Select(o.Source, now)
	if len(all) > 1 {
		err = errors.Join(err, errors.New("--dir: only one directory can be searched"))
	}
	// Select returns at least one Selection, so all[0] exists even for an invalid Source.
	return &Query{Options: o, Selection: all[0], stderr: stderr}, errors.Join(err, o.check())
}

// check returns the errors in all options except Source, including options that the output format does not support.
func (o *Options) check() error {
	var errs []error
	wrong := func(is bool, flag, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(flag+": "+format, args...))
		}
	}
	step := o.Step
	// A step of more than a day has no natural beginning, because steps begin at midnight.
	wrong(step != 0 && (step < time.Second || step > 24*time.Hour || step%time.Second != 0), "--step",
		"%s is not whole seconds, from 1s to 24h", step)
	wrong(o.Top < 0, "--top", "%d is not at least 1", o.Top)
	// The format sentinel prints lines of the log unchanged, and a sum has no line.
	wrong(o.sums() && formats[o.Output].time == "", "--format",
		"%s has lines of the log, and no sums of --step, --top and --summary", o.Output)
	return errors.Join(errs...)
}

// sums reports whether the query prints sums instead of rows.
func (o *Options) sums() bool { return o.Summary || o.Step != 0 || o.Top != 0 }

// Run prints the rows or sums to stdout. With Follow it runs until ctx ends.
func (q *Query) Run(ctx context.Context, stdout io.Writer) error {
	l := layout{zone: q.Zone, several: q.several, sums: q.sums()}
	// Only a terminal obeys escape sequences. In a file or a pipe, the format sentinel must keep the lines unchanged.
	if f, ok := stdout.(*os.File); ok {
		l.screen = term.IsTerminal(int(f.Fd()))
	}
	write := newLines(stdout, formats[q.Output], l).write
	// The table of sums over the range has aligned columns and rates, because people read it. All other tables are
	// written line by line.
	if l.sums && q.Step == 0 && q.Output == "table" {
		write = func(rows iter.Seq[*row]) error { return writeSummary(stdout, q.Zone, rows) }
	}
	if q.Source.Follow {
		return q.follow(ctx, write)
	}
	return q.search(ctx, write)
}

// search writes the rows of a range, or their sums, and then messages about malformed lines or about an empty result.
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
	// write consumes the rows. Until it returns, the counts in result are not complete.
	err = write(all)
	q.Malformed(q.stderr, rows.Malformed())
	if err := errors.Join(err, result.err, rows.Err()); err != nil {
		return err
	}
	// An empty result is not an error, so the exit status is 0. The hints go to stderr, not into the output.
	if result.passed == 0 {
		q.Empty(q.stderr, q.Where, result.found)
	}
	return nil
}

// scan has the results of a search that are known only after the last row.
type scan struct {
	found, passed int   // rows that were found, and rows that also meet the conditions
	err           error // of reading or of the context
}

// rows yields the rows that meet all conditions, until ctx ends, and closes the search. A row is valid only until the
// next one. After the loop, s has the counts and the error.
func (s *scan) rows(ctx context.Context, q *Query, rows *metriclog.Rows) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		defer rows.Close() //nolint:errcheck // closing after reading loses nothing
		// The function for Each returns enough when the consumer stops.
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

// follow prints each new row once, soon after it is logged, until ctx ends. It repeats the search at an interval. It
// prints an error only if it differs from the last one, because an error that is repeated every quarter of a second
// would hide the rows.
func (q *Query) follow(ctx context.Context, write func(iter.Seq[*row]) error) error {
	// The log is written once a second, so a row is printed at most a quarter of a second after it is logged.
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
			// The next search begins after the last row that was read, even if the log has been rotated to a new file.
			query.After = rows.Position()
			// Each search reads the lines after the last row again. Count their malformed lines only once.
			q.Malformed(q.stderr, rows.Malformed()-malformed)
			malformed = rows.Malformed()
			err = rows.Err()
		}
		message := ""
		switch {
		// The service may not have started yet. Wait for it instead of failing.
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

// warnAbsent warns if the selected application or process has no log yet, and lists the existing logs, because the name
// may be misspelled.
func (q *Query) warnAbsent() {
	logs, err := q.Searcher.Logs()
	selected := func(l metriclog.Log) bool { return len(q.PIDs) == 0 || slices.Contains(q.PIDs, l.PID) }
	if err != nil || q.Searcher.App == "" && len(q.PIDs) == 0 || slices.ContainsFunc(logs, selected) {
		return
	}
	// A message instead of an error: the application may start later and create its log then.
	has := "no logs"
	if all, err := (metriclog.Searcher{Dir: q.Searcher.Dir}).Logs(); err == nil && len(all) > 0 {
		has = "logs of " + List(all)
	}
	fmt.Fprintf(q.stderr, "windowstat: waiting for a log; %s has %s\n", q.Searcher.Dir, has)
}
