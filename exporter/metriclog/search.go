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

// Searcher finds rows in the metric logs of a directory. It reads the logs of a [Writer] and of Sentinel, with or
// without process IDs in their names. A Searcher keeps no files open and is safe for concurrent use, also while logs
// are written.
type Searcher struct {
	// Dir is the directory of the logs.
	Dir string
	// App is the application to search for. If it is empty, all logs are searched.
	App string
}

// Query selects rows. The zero Query selects all.
type Query struct {
	// From and To are the first and the last second, both inclusive. The zero Time is no limit.
	From, To time.Time
	// PIDs are the process IDs whose logs are searched. If it is empty, the logs of all processes are searched.
	PIDs []int
	// Match selects resources by name. If it is nil, all resources are selected. Match must be a pure function: its
	// results are cached.
	Match func(resource string) bool
	// After is the [Rows.Position] of an earlier search. The new search continues after it.
	After Position
}

// Search starts a search of all complete seconds in the logs. Rows that are logged after the call may be missing from
// the result. Search finds the first row with the index of a segment or, without a valid index, by reading the segment.
// The error means that the directory cannot be read.
func (s Searcher) Search(q Query) (*Rows, error) {
	from, to := q.From.Unix(), int64(noLimit) // the zero Time is earlier than all seconds
	if !q.To.IsZero() {
		to = q.To.Unix()
	}
	all, err := segments(s.Dir, s.filter(q.PIDs))
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
		// The segment may be skipped if its last second is before the range. Trust its last second only if the segment
		// is closed, because a later one exists, and begins before the range as well: the last line may be damaged, or
		// written under a clock that was set back.
		if x.last != 0 && x.first < log.from && i+1 < len(all) && all[i+1].log == x.log {
			end = x.last + 1
		}
		if end > log.from {
			if len(log.pending) == 0 {
				log.hasRow, log.unix = true, max(x.first, log.from)
			}
			log.pending = append(log.pending, x)
		}
	}
	return r, nil
}

// filter returns a function that selects the segments to search.
func (s Searcher) filter(pids []int) func(segment) bool {
	app := fileName(s.App)
	return func(x segment) bool {
		return (app == "" || x.app == app) && (len(pids) == 0 || slices.Contains(pids, x.pid))
	}
}

// noLimit is the end of a range without a limit. All seconds are earlier.
const noLimit = 1 << 62

// Rows iterates over the result of a search. It merges one stream per log by second; each stream reads the segments of
// its log in order.
//
//	stream shop         2026-01-02  03:04:05 | 03:04:06 | …  --+
//	stream shop.pid12   2026-01-02  03:04:05 | 03:04:08 | …  --+--> rows in the order of All
//	stream till         first second 07:00:00, not opened    --+
//
// Rows are read on demand. A stream opens a segment when the first second of the segment may be the next one, and
// closes it after the last row, so each log that is being read has one open file. The memory is bounded by a cache of
// 100,000 names. In rows of resources that do not match, only the name is parsed. Rows is not safe for concurrent use.
type Rows struct {
	streams   []*stream
	line      []byte           // line of the last row
	names     map[string]*name // by escaped name
	match     func(string) bool
	malformed int64
	errs      []error // may contain nil
}

// name is a cache entry for the name of a resource.
type name struct {
	resource  string
	selected  bool   // by Query.Match
	escaped   string // as in the lines
	successor *name  // name in the row that followed last time; usually the same name follows again
}

// maxNames bounds the cache of names.
const maxNames = 100_000

// All yields the rows in ascending order of seconds; within a second, it orders them by log and then by position in the
// file. If the caller breaks the loop, the next loop continues after the last row. All omits rows that a slower process
// logs later. A later search after their [Rows.Position] returns them.
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

// Each calls f for the rows, in the order of [Rows.All], until f returns an error or ctx is done, and returns the
// error. It checks ctx once per second of a log. The row is valid until f returns; f must not change it.
func (r *Rows) Each(ctx context.Context, f func(*Row) error) error {
	for s := r.earliest(); s != nil; s = r.earliest() {
		if err := ctx.Err(); err != nil {
			return err
		}
		for second := s.unix; s.hasRow && s.unix == second; s.advance(r) {
			if s.line == nil || !s.advancePosition(second) || !s.selected {
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

// earliest returns the stream with the earliest next row. For an unopened stream it uses the earliest second that the
// stream may have. It returns nil if no stream has rows.
func (r *Rows) earliest() (first *stream) {
	for _, s := range r.streams {
		if s.hasRow && (first == nil || s.unix < first.unix) {
			first = s
		}
	}
	return first
}

// lookupName parses the resource's name from the rest of a line and returns its cache entry and the fields after it. It
// returns nil if the line has no name. The parameter after is the name in the previous row, or nil. Usually the same
// names follow each other again, so lookupName tries after.successor first.
func (r *Rows) lookupName(rest []byte, after *name) (n *name, counts []byte) {
	if after != nil && after.successor != nil {
		n = after.successor
		if end := len(n.escaped); end < len(rest) && rest[end] == '|' && string(rest[:end]) == n.escaped {
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
		n = &name{resource: parseName(raw), escaped: string(raw)}
		n.selected = r.match == nil || r.match(n.resource)
		r.names[n.escaped] = n
	}
	if after != nil {
		after.successor = n
	}
	return n, counts
}

// Line returns the line of the last row, unchanged and without its newline. It is valid until the next row.
func (r *Rows) Line() []byte { return r.line }

// Close closes all open files. Callers that read all rows need not call it.
func (r *Rows) Close() error {
	var errs []error
	for _, s := range r.streams {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// Err returns the errors so far. Rows of unreadable files are missing from the result. An unreadable index causes no
// missing rows.
func (r *Rows) Err() error { return errors.Join(r.errs...) }

// Malformed returns the number of lines that were skipped so far: malformed lines, lines of a second that the file
// cannot have, and the lines of an incomplete last second in a segment that is not the newest. In rows of resources
// that do not match, only the name is checked.
func (r *Rows) Malformed() int64 { return r.malformed }

// Position returns the position after the last row, for [Query.After]. A later search with the same Dir, App, PIDs,
// From and Match continues there and returns each row once. It includes rows of logs that were delayed.
func (r *Rows) Position() Position {
	at := map[string]position{}
	for _, s := range r.streams {
		if p := cmp.Or(s.at, s.after); p != (position{}) {
			at[s.log] = p
		}
	}
	return Position{at}
}

// Position records how far each log has been read, see [Rows.Position]. The zero Position is before all rows.
type Position struct{ logs map[string]position }

// position is a position in one log.
type position struct {
	second int64
	rows   int64 // rows of this second so far, without malformed ones
}

// Log identifies a log by its file names. One process at a time writes it.
type Log struct {
	App string // as in file names, with dashes for dots
	PID int    // 0 without a process ID
}

// String returns the name of the log as in file names, such as shop or shop.pid12.
func (l Log) String() string {
	if l.PID == 0 {
		return l.App
	}
	return l.App + ".pid" + strconv.Itoa(l.PID)
}

// Logs returns the logs that s reads, sorted by name. The error means that the directory cannot be read.
func (s Searcher) Logs() ([]Log, error) {
	all, err := segmentsByName(s.Dir, s.filter(nil))
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

// Span returns the first and the last second in the logs of the given processes. Without pids, it includes the logs of
// all processes. If nothing is logged, it returns zero Times. Span reads only the ends of files, and omits unreadable
// files. The error means that the directory cannot be read.
func (s Searcher) Span(pids ...int) (first, last time.Time, err error) {
	all, err := segments(s.Dir, s.filter(pids))
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
