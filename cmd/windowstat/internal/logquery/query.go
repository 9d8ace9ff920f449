// Package logquery searches the metric logs of a directory, as windowstat log does: the rows of a range or those that are being
// logged, or their sums, as a table, JSON, CSV or the lines of the log.
//
// A query is a pipeline: rows of single seconds are found ([Source], [Options].Where), added up (Step, Top, Summary), the last
// are kept (Tail), and they are printed ([Options].Output). Errors name the flags of the command, which the options are.
package logquery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Options are what is wanted of the logs.
type Options struct {
	// Source is which rows are read.
	Source Source
	// Where are conditions that a row of a second must meet, see [WhereHelp].
	Where []string
	// Step, Top and Summary print sums of rows by application and resource, the most in [Options].By first: of each step of the
	// clock, or, without Step, of the whole range. With Top, only so many resources of a step are printed. Summary is all of the
	// range, with its rates.
	Step    time.Duration
	Top     int
	Summary bool
	// By is the column of Top and of the busiest second, pass if empty.
	By string
	// Tail is how many rows are printed, the last ones; all if 0.
	Tail int
	// Output is one of [Formats]; table if empty.
	Output string
}

// output is what can be shown in a place.
type output struct {
	print func(io.Writer, layout) printer
	sums  bool // it can have rows that are sums
}

var outputs = map[string]output{
	"table":    {newTable, true},
	"json":     {newJSON, true},
	"csv":      {newCSV, true},
	"sentinel": {newSentinel, false},
}

// Formats are the values of --format.
func Formats() []string { return slices.Sorted(maps.Keys(outputs)) }

// Query is a search that can be run. It must be made with [New].
type Query struct {
	Options
	*Selection
	where  func(*metriclog.Row) bool // nil for all
	by     *column
	stderr io.Writer
}

// New makes a Query at a time, from which relative times are counted. Warnings go to stderr. The error has everything that is
// wrong with the options.
func New(o Options, now time.Time, stderr io.Writer) (*Query, error) {
	q := &Query{Options: o, stderr: stderr}
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	var err error
	q.Selection, err = Select(o.Source, now)
	add(err)
	q.where, err = parseWhere(o.Where)
	add(err)
	if q.by, err = parseColumn(cmp.Or(q.By, columns[0].name), true); err != nil {
		add(fmt.Errorf("--by: %w", err))
	}
	q.Output = cmp.Or(q.Output, "table")
	add(q.check())
	return q, errors.Join(errs...)
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
	wrong(o.Tail < 0, "-n", "%d is not at least 1", o.Tail)
	out, ok := outputs[o.Output]
	wrong(!ok, "--format", "%q is not one of %s", o.Output, strings.Join(Formats(), ", "))
	wrong(ok && o.sums() && !out.sums, "--format", "%s has the lines of the log, and no sums as with --step, --top and --summary", o.Output)
	return errors.Join(errs...)
}

// sums reports whether rows are added up.
func (o *Options) sums() bool { return o.Summary || o.Step != 0 || o.Top != 0 }

// Run prints what is wanted, with Follow until ctx ends.
func (q *Query) Run(ctx context.Context, stdout io.Writer) error {
	if q.Source.Follow {
		return q.follow(ctx, q.printer(stdout))
	}
	return q.search(ctx, q.printer(stdout))
}

// printer is what the rows go through.
func (q *Query) printer(stdout io.Writer) printer {
	l := layout{zone: q.Zone, several: q.several, sums: q.sums()}
	p := outputs[q.Output].print(stdout, l)
	if l.sums && q.Step == 0 && q.Output == "table" {
		p = newSummaryTable(stdout, l)
	}
	if q.Tail > 0 {
		p = &lastRows{printer: p, most: q.Tail}
	}
	if l.sums {
		p = &steps{printer: p, zone: q.Zone, step: q.Step, top: q.Top, begin: q.From, totals: totals{by: q.by}}
	}
	return p
}

// search prints the rows of a range.
func (q *Query) search(ctx context.Context, p printer) error {
	rows, err := q.Searcher.Search(q.rows())
	if err != nil {
		return err
	}
	found, printed, err := q.pass(ctx, rows, p.print)
	q.Malformed(q.stderr, rows.Malformed())
	if err := errors.Join(err, rows.Err()); err != nil {
		_ = p.flush() // what there is; the error is another one
		return err
	}
	if printed == 0 {
		q.Empty(q.stderr, q.Where, found)
	}
	return p.flush()
}

// pass hands the rows that are wanted to f, until ctx ends, and closes them.
func (q *Query) pass(ctx context.Context, rows *metriclog.Rows, f func(*row) error) (found, passed int, err error) {
	defer rows.Close() //nolint:errcheck // they were only read
	var wanted row
	err = rows.Each(ctx, func(r *metriclog.Row) error {
		found++
		if q.where != nil && !q.where(r) {
			return nil
		}
		passed++
		wanted.Row, wanted.line = r, rows.Line()
		return f(&wanted)
	})
	return found, passed, err
}
