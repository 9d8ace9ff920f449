package live

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/collector"
)

// viewer is what a viewer asks for, and what it has. A stream has one, a poll one for each request. It is not safe for
// concurrent use.
//
// A viewer is sent what it lacks. Of the total it has the seconds of its position; of the resource that is open those up to had; of the
// table the rows of the last message, whose names and small charts are not sent again; and details of the resource until they change. A
// stream remembers all of that. A poll, and a stream that begins again, has a position and had of the request only, so its first message
// has a whole table.
type viewer struct {
	query
	position
	names  map[int64]bool      // numbers of the rows of its last message
	table  *snapshot           // that it was sent last
	opened *collector.Resource // that is open, when there is one of that name
	known  json.RawMessage     // details of it
	spent  time.Duration       // on what is made for it alone
	pays   *rate.Limiter       // for that, until it has had a message
}

// message is what a viewer is sent: the seconds that it lacks of the total and of the resource that is open, and a page of the
// table if that is another one than in the last message.
type message struct {
	After   position `json:"after"`   // what the viewer has then
	Process int64    `json:"process"` // differs between processes
	Inbound bool     `json:"inbound"` // whether the total is of inbound calls
	Fresh   bool     `json:"fresh"`   // whether everything is sent, because the position was of another process, or of another total
	Now     int64    `json:"now"`     // milliseconds of Unix time
	At      int64    `json:"at"`      // the last second that is over
	Columns []string `json:"columns,omitempty"`
	// A second is its Unix time and its columns.
	Total    [][]int64       `json:"total"`
	Resource [][]int64       `json:"resource"` // null if there is none of that name
	Details  json.RawMessage `json:"details,omitempty"`
	Age      int64           `json:"age"`     // of the resource's calls in flight, on average, in microseconds; -1 if there are none
	Running  []running       `json:"running"` // the oldest calls in flight
	// What the process had of the machine, see [process].
	Machine        [][]int64 `json:"machine"`
	MachineColumns []string  `json:"machine_columns,omitempty"`
	Table          *table    `json:"table,omitempty"`
}

// table is a page of the table.
type table struct {
	First     int64  `json:"first"` // Unix time of the first second, and after the last
	End       int64  `json:"end"`
	Resources int    `json:"resources"`
	Matches   int    `json:"matches"` // how many the search finds
	Rows      []cell `json:"rows"`
}

// cell is a row of the table. One that was not in the message before has its name, and the passes of the small chart.
type cell struct {
	Number int64   `json:"n"`
	Values []int64 `json:"v"`
	Name   string  `json:"name,omitempty"`
	Past   []int64 `json:"past,omitempty"`
}

// message makes the next message for a viewer.
func (f *feed) message(v *viewer) message {
	now, total := f.present()
	shown := now
	if v.end > 0 {
		if shown = v.table; shown == nil { // or it has what does not change
			shown = f.ranged(v, now)
		}
	}
	began := time.Now()
	defer func() { v.spent += time.Since(began) }()
	epoch := f.started << 1
	if total.inbound {
		epoch++
	}
	m := message{Process: f.started, Inbound: total.inbound, Fresh: v.epoch != epoch, Now: f.wall(), At: now.end - 1, Age: -1, Running: now.running}
	if m.Fresh {
		v.position, m.Columns, m.MachineColumns = position{epoch: epoch}, slices.Concat(f.columns.names, inRow), processColumns[:]
	}
	m.Machine = f.process.after(v.last)
	m.Total, v.position.first, v.last = total.after(v.position.first, v.last, now.end)
	m.After = v.position
	if v.resource != "" && v.opened == nil {
		all := f.stats.Seal().Resources
		if i := slices.IndexFunc(all, func(r *collector.Resource) bool { return r.Name() == v.resource }); i >= 0 {
			v.opened = all[i]
		}
	}
	if v.opened != nil {
		f.open(v, now, &m)
	}
	if shown != v.table && shown.end > 0 {
		m.Table = f.page(shown, v)
	}
	return m
}

// open adds the resource that a viewer has open: the seconds that it lacks, and details that it does not have. These are read once a
// second for all viewers, because a call tree may be large.
func (f *feed) open(v *viewer, now *snapshot, m *message) {
	r := v.opened
	from := max(f.stats.Timeline().IndexAtOrAfter(time.Unix(v.had, 1)), now.to-keptSeconds)
	if m.Resource = f.seconds(r.View(), from, now.to); len(m.Resource) > 0 {
		v.had = m.Resource[len(m.Resource)-1][0]
	}
	once, _ := now.details.LoadOrStore(r, sync.OnceValues(func() (json.RawMessage, time.Duration) { return f.describe(r) }))
	text, age := once.(func() (json.RawMessage, time.Duration))()
	if m.Age = f.columns.time(age); !bytes.Equal(text, v.known) {
		m.Details, v.known = text, text
	}
}

// wall is the time by the names of the seconds, in milliseconds.
func (f *feed) wall() int64 {
	line := f.stats.Timeline()
	now := line.Now()
	second := line.At(now)
	return second.Name*1000 + now.Sub(second.Start).Milliseconds()
}

// page makes a page of the table. A small chart goes on with the row's passes if the message before was of the second before; otherwise it
// is sent again.
func (f *feed) page(s *snapshot, v *viewer) *table {
	rows, matches := s.choose(v.query, f)
	t := &table{First: s.first, End: s.end, Resources: len(s.rows), Matches: matches, Rows: make([]cell, len(rows))}
	follows := v.table != nil && v.table.end == s.end-1 && v.table.to-v.table.from == 1 // so that small charts can go on
	names := make(map[int64]bool, len(rows))
	for i, x := range rows {
		c := cell{Number: x.number, Values: f.columns.append(nil, &x.m, x.p99)}
		c.Values = append(c.Values, x.failed, x.refused, f.columns.time(time.Duration(x.usual.Load())))
		if !follows || !v.names[x.number] {
			c.Name, c.Past = x.Name(), s.past(x.entry)
		}
		names[x.number], t.Rows[i] = true, c
	}
	v.table, v.names = s, names
	return t
}

// choose returns the rows on a page of the table, and how many there are on all pages. Rows that somebody is about to choose from are
// held: they come first, wherever they are now, so that none jumps away under a pointer.
func (s *snapshot) choose(q query, f *feed) (rows []*row, matches int) {
	all := s.sorted(q.by, f.columns)
	for _, n := range q.held {
		if x := s.row(n); x != nil {
			rows = append(rows, x)
		}
	}
	skip := q.skip
	for i := range all {
		x := all[i]
		if q.up {
			x = all[len(all)-1-i]
		}
		if q.search != "" && !strings.Contains(x.lower, q.search) {
			continue
		}
		matches++
		if skip--; skip < 0 && len(rows) < f.rows && !slices.Contains(q.held, x.number) {
			rows = append(rows, x)
		}
	}
	return rows, matches
}
