package metriclog

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// Searcher finds rows in the metric logs of a directory: those that a [Writer] writes, Sentinel's, and those of several
// processes that have their number in the files' names. It is safe for concurrent use, also while logs are being
// written; it keeps nothing open.
type Searcher struct {
	// Dir is the directory.
	Dir string
	// App is the application whose logs are searched; all that there are if empty.
	App string
}

// Query says which rows are wanted. The zero Query is all of them.
type Query struct {
	// From and To are the first and the last second, both included. The zero Time is no limit.
	From, To time.Time
	// PIDs are the processes whose logs are searched, by their numbers in the files' names; all if empty.
	PIDs []int
	// Match says which resources are wanted, by their names as they were given to the Collector; nil is all. It must always
	// say the same of a name, and is not asked for every row.
	Match func(resource string) bool
	// After is a [Rows.Token]: what was read up to there is left out.
	After string
}

// Search begins a search. The error says that the directory cannot be read, or that the token is none.
//
// It reads what has been logged by now, but no second that is still being written. A place is found by bisecting a file's
// index or, if that is missing or wrong, the file itself.
func (s Searcher) Search(q Query) (*Rows, error) {
	from, to := int64(minSecond), int64(maxSecond)
	if !q.From.IsZero() {
		from = q.From.Unix()
	}
	if !q.To.IsZero() {
		to = q.To.Unix()
	}
	app, _ := parseLogName(logName(s.App, sentinel.kind, 0), sentinel.kind)
	return search(s.Dir, func(log string) bool {
		of, pid := parseLogName(log, sentinel.kind)
		if len(q.PIDs) > 0 && !slices.Contains(q.PIDs, pid) {
			return false
		}
		return s.App == "" || of == app
	}, from, to, q)
}

// search searches the logs that are wanted.
func search(dir string, wanted func(log string) bool, from, to int64, q Query) (*Rows, error) {
	after, err := parseToken(q.After)
	if err != nil {
		return nil, err
	}
	all, err := segments(dir, sentinel.kind, wanted)
	if err != nil {
		return nil, fmt.Errorf("metriclog: %w", err)
	}
	logs := map[string][]segment{}
	for _, x := range all {
		logs[x.log] = append(logs[x.log], x)
	}
	r := &Rows{names: map[string]*name{}, match: q.Match, after: map[string]position{}}
	for _, log := range slices.Sorted(maps.Keys(logs)) {
		first := from
		at, ok := after[log]
		if ok {
			r.after[log] = at
			first = max(first, at.Second)
		}
		r.streams = append(r.streams, newStream(dir, log, logs[log], first, to, at))
	}
	return r, nil
}

const (
	minSecond = -1 << 62
	maxSecond = 1 << 62
)

// Rows are the rows that a search finds. They are read as they are asked for; it takes the memory of one row, and the
// names, and an open file for each log that was begun and not read to its end. It is not safe for concurrent use.
type Rows struct {
	streams   []*stream
	names     map[string]*name // as they stand in the log
	match     func(string) bool
	after     map[string]position // what was read before
	malformed int64
	errs      []error
}

// name is a resource's name.
type name struct {
	resource string
	wanted   bool
	raw      string // as it stands in the log
	next     *name  // what came after it the last time; it mostly does again
}

// maxNames bounds the names that are remembered.
const maxNames = 100_000

// All yields the rows, ascending by second; those of one second by log, and as they were written. A loop that was left
// goes on where it was with the next one. If rows are logged late, by a process that others have overtaken, they come when
// they are asked for with a Token.
func (r *Rows) All() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for {
			s := r.first()
			if s == nil {
				return
			}
			for second := s.second; s.ready && s.second == second; s.advance(r) {
				s.done = s.count
				if s.wanted && !yield(s.row) {
					s.advance(r)
					return
				}
			}
		}
	}
}

// first is the stream whose next row is due; nil if there is none. One that begins later is not opened yet.
func (r *Rows) first() (first *stream) {
	for {
		first = nil
		for _, s := range r.streams {
			if (s.ready || !s.began) && (first == nil || s.due() < first.due()) {
				first = s
			}
		}
		if first == nil || first.began {
			return first
		}
		first.began = true
		first.advance(r)
	}
}

// name finds the resource for what a line has behind its second, after another one or nil, and returns the counts, too. It
// is nil if there is no name.
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

// Close closes the files that are still open. It is needed only where not all rows were read.
func (r *Rows) Close() error {
	var errs []error
	for _, s := range r.streams {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// Err is what went wrong so far. A file that cannot be read costs its rows, and not those of others.
func (r *Rows) Err() error { return errors.Join(r.errs...) }

// Malformed is how many lines were left out so far, because they are none or are out of place. Of resources that do not
// match, no more than the name is read.
func (r *Rows) Malformed() int64 { return r.malformed }

// Token is how far was read, for [Query.After]: a later search goes on behind the last row, and returns each
// row once, also of logs that were behind. It holds for the same Dir, App, PIDs, From and Match.
func (r *Rows) Token() string {
	for _, s := range r.streams {
		if s.done != (position{}) {
			r.after[s.log] = s.done
		}
	}
	b, err := json.Marshal(r.after)
	if err != nil {
		panic(err) // it is numbers
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// position is how far a log was read.
type position struct {
	Second int64 `json:"s"`
	Rows   int64 `json:"n"` // of that second, malformed ones not included
}

func parseToken(token string) (map[string]position, error) {
	at := map[string]position{}
	if token == "" {
		return at, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(b, &at)
	}
	if err != nil || at == nil {
		return nil, fmt.Errorf("metriclog: %.80q is not a token of a search", token)
	}
	return at, nil
}

// newStream sorts out the files in which there cannot be a row from from on.
func newStream(dir, log string, files []segment, from, to int64, after position) *stream {
	app, pid := parseLogName(log, sentinel.kind)
	s := &stream{dir: dir, log: log, from: from, to: to, after: after}
	s.parser.row.App, s.parser.row.PID = app, pid
	for i, x := range files {
		if i+1 < len(files) && files[i+1].known && files[i+1].first < from {
			continue
		}
		s.files = append(s.files, x)
	}
	return s
}
