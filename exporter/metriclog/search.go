package metriclog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Searcher finds rows in the metric logs of a directory: those of a [Writer] and of Sentinel, with or without process ids in
// their names. It is safe for concurrent use, also while logs are written, and keeps nothing open.
type Searcher struct {
	// Dir is the directory.
	Dir string
	// App is the application whose logs are searched; all logs if empty.
	App string
}

// Query selects rows. The zero Query selects all.
type Query struct {
	// From and To are the first and the last second, both included; the zero Time is no limit.
	From, To time.Time
	// PIDs are the process ids whose logs are searched; all if empty.
	PIDs []int
	// Match selects resources by name; nil selects all. It must be a pure function: its result is cached.
	Match func(resource string) bool
	// After is the [Rows.Position] of an earlier search: this one continues behind it.
	After Position
}

// Search starts a search of what has been logged by now, without the second that is being written. It finds the first row by the
// index of a file or, if that is missing or wrong, by reading the file. The error says that the directory cannot be read.
func (s Searcher) Search(q Query) (*Rows, error) {
	from, to := q.From.Unix(), int64(noTo) // the zero Time is before all seconds
	if !q.To.IsZero() {
		to = q.To.Unix()
	}
	all, err := segments(s.Dir, s.wanted(q.PIDs))
	if err != nil {
		return nil, fmt.Errorf("metriclog: %w", err)
	}
	r := &Rows{names: map[string]*name{}, match: q.Match}
	var log *stream
	for i, x := range all {
		if log == nil || log.log != x.log {
			after := q.After.logs[x.log]
			log = &stream{dir: s.Dir, log: x.log, from: max(from, after.second), to: to, after: after}
			log.row.App, log.row.PID = x.app, x.pid
			r.streams = append(r.streams, log)
		}
		_, end := x.span()
		// If a later file has begun, this one is over, and its last second tells whether it can be left out. That may be a damaged one, or one
		// of a clock that was set back: so only if the file begins before the range as well.
		if x.last != 0 && x.first < log.from && i+1 < len(all) && all[i+1].log == x.log {
			end = x.last + 1
		}
		if end > log.from {
			if len(log.files) == 0 {
				log.hasRow, log.unix = true, max(x.first, log.from)
			}
			log.files = append(log.files, x)
		}
	}
	return r, nil
}

// wanted returns whether a file is searched.
func (s Searcher) wanted(pids []int) func(segment) bool {
	app := fileName(s.App)
	return func(x segment) bool {
		return (app == "" || x.app == app) && (len(pids) == 0 || slices.Contains(pids, x.pid))
	}
}

// noTo is the end of a range that has none: it is behind all seconds.
const noTo = 1 << 62

// Rows iterates over the result of a search. There is a stream for each log, which reads its files one after the other, and whichever
// stream has the earliest second is next. Rows are read on demand: a file is opened when its first second may be next, so
// memory is bounded by the names, of which 100,000 are remembered, and one file is open for each log that is being read. A row whose
// resource does not match costs its name, and no numbers. It is not safe for concurrent use.
type Rows struct {
	streams   []*stream
	line      []byte
	names     map[string]*name // by escaped name
	match     func(string) bool
	malformed int64
	errs      []error // nil among them is none
}

// name is a cached resource name.
type name struct {
	resource string
	wanted   bool
	raw      string // escaped
	next     *name  // name that followed it the last time, which mostly follows again
}

// maxNames limits the cache of names.
const maxNames = 100_000

// All yields the rows, ascending by second, then by log, then in the order in the file. After a break the next loop continues
// behind the last row. Rows that a slower process logs later are not seen; a later search behind their [Rows.Position] returns them.
func (r *Rows) All() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		_ = r.Each(context.Background(), func(row *Row) error {
			if !yield(*row) {
				return context.Canceled
			}
			return nil
		})
	}
}

// Each calls f for the rows, in the order of [Rows.All], until it returns an error or ctx ends, and returns that error. It
// looks at ctx once for each second of a log. The row is valid until f returns, which must not change it.
func (r *Rows) Each(ctx context.Context, f func(*Row) error) error {
	for s := r.first(); s != nil; s = r.first() {
		if err := ctx.Err(); err != nil {
			return err
		}
		for second := s.unix; s.hasRow && s.unix == second; s.advance(r) {
			if s.line == nil || !s.next(second) || !s.wanted {
				continue
			}
			r.line = s.line
			if err := f(&s.row); err != nil {
				s.advance(r)
				return err
			}
		}
	}
	return nil
}

// first returns the stream with the next row, or with files that may have it and are not opened yet; nil if there is none.
func (r *Rows) first() (first *stream) {
	for _, s := range r.streams {
		if s.hasRow && (first == nil || s.unix < first.unix) {
			first = s
		}
	}
	return first
}

// name parses the resource's name from the rest of a line, and returns what is behind it, too. after is the name of the row
// before, or nil. It returns nil if there is no name.
func (r *Rows) name(rest []byte, after *name) (n *name, counts []byte) {
	if after != nil && after.next != nil {
		n = after.next
		if end := len(n.raw); end < len(rest) && rest[end] == '|' && string(rest[:end]) == n.raw {
			return n, rest[end+1:]
		}
	}
	raw, counts, ok := bytes.Cut(rest, []byte("|"))
	if !ok {
		return nil, nil
	}
	n = r.names[string(raw)]
	if n == nil {
		if len(r.names) >= maxNames {
			clear(r.names)
		}
		n = &name{resource: parseName(raw), raw: string(raw)}
		n.wanted = r.match == nil || r.match(n.resource)
		r.names[n.raw] = n
	}
	if after != nil {
		after.next = n
	}
	return n, counts
}

// Line returns the last row's line as it stands in the file, without its newline. It is valid until the next row.
func (r *Rows) Line() []byte { return r.line }

// Close closes the files that are open. It is needed only if not all rows were read.
func (r *Rows) Close() error {
	var errs []error
	for _, s := range r.streams {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// Err returns the errors so far. A file that cannot be read costs its own rows only, and an index none.
func (r *Rows) Err() error { return errors.Join(r.errs...) }

// Malformed returns how many lines were skipped so far because they are malformed or out of order. Of resources that do not
// match only the name is parsed.
func (r *Rows) Malformed() int64 { return r.malformed }

// Position returns the position behind the last row, for [Query.After]: a later search continues there and returns each row once,
// also of logs that were behind. It is valid for the same Dir, App, PIDs, From and Match.
func (r *Rows) Position() Position {
	at := map[string]position{}
	for _, s := range r.streams {
		if p := cmp.Or(s.at, s.after); p != (position{}) {
			at[s.log] = p
		}
	}
	return Position{at}
}

// Position is how far logs have been read, see [Rows.Position]. The zero Position is before all rows.
type Position struct{ logs map[string]position }

// position is a position in a log.
type position struct {
	second int64
	rows   int64 // of that second, without malformed ones
}

// Log is one log: the files that one process writes, identified by their names.
type Log struct {
	App string // as in file names, with dashes for dots
	PID int    // 0 if the names have none
}

// String is the log's name in file names: shop, or shop.pid12.
func (l Log) String() string {
	if l.PID == 0 {
		return l.App
	}
	return l.App + ".pid" + strconv.Itoa(l.PID)
}

// Logs returns the logs that the Searcher reads, sorted by name. The error says that the directory cannot be read.
func (s Searcher) Logs() ([]Log, error) {
	all, err := segmentsByName(s.Dir, s.wanted(nil))
	if err != nil {
		return nil, fmt.Errorf("metriclog: %w", err)
	}
	var logs []Log
	for _, x := range all {
		logs = append(logs, Log{x.app, x.pid})
	}
	slices.SortFunc(logs, func(a, b Log) int { return cmp.Or(strings.Compare(a.App, b.App), a.PID-b.PID) })
	return slices.Compact(logs), nil
}

// Span returns the first and the last second of the logs of these processes, all if there are none: zero Times if nothing is
// logged. It reads the ends of files only. Files that cannot be read are left out; the error says that the directory cannot be.
func (s Searcher) Span(pids ...int) (first, last time.Time, err error) {
	all, err := segments(s.Dir, s.wanted(pids))
	if err != nil {
		return first, last, fmt.Errorf("metriclog: %w", err)
	}
	for _, x := range all {
		if at := time.Unix(x.first, 0).UTC(); x.first != 0 && (first.IsZero() || at.Before(first)) {
			first = at
		}
		if at := time.Unix(x.last, 0).UTC(); x.last != 0 && at.After(last) {
			last = at
		}
	}
	return first, last, nil
}
