package live

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/trouble"
)

// viewer holds the request of a viewer and the data that it has received. A stream has one viewer for its lifetime, a
// poll one for each request. A viewer is not safe for concurrent use.
//
// A message contains only new data:
//
//	part               the viewer already has            a stream knows it from   a poll knows it from
//	----               ----                              ----                     ----
//	total              the seconds of its position       the last message         parameter after
//	open resource      the seconds up to resourceUntil   the last message         parameter had
//	table              names and small charts of rows    the last message         nothing: sends them all
//	details            the last version                  the last message         nothing: sends them
//
// A stream that an interrupted browser resumes has, like a poll, only its position and resourceUntil, so its first
// message contains the whole table page.
type viewer struct {
	ctx context.Context // ends when the viewer is evicted
	query
	position
	sentRows    map[int64]bool      // numbers of the rows in the last message
	sentTable   *snapshot           // snapshot of the last table
	resource    *collector.Resource // the open resource; nil until it exists
	sentDetails json.RawMessage     // details of resource
	spent       time.Duration       // time spent on data for this viewer alone
	limiter     *rate.Limiter       // charged for the first message, then nil
}

// message is an event of a stream, or the response to a poll.
type message struct {
	After      position `json:"after"`   // position of the viewer after this message
	Process    int64    `json:"process"` // identifies the process
	Inbound    bool     `json:"inbound"` // the total counts inbound calls; otherwise all outermost calls
	Fresh      bool     `json:"fresh"`   // everything is sent, because the process or the total is a different one
	Now        int64    `json:"now"`     // milliseconds of Unix time
	LastSecond int64    `json:"at"`      // Unix time of the last sealed second
	Columns    []string `json:"columns,omitempty"`
	// Each second in Total, Resource and Machine is its Unix time, followed by its columns.
	Total    [][]int64       `json:"total"`
	Resource [][]int64       `json:"resource"` // null if the open resource does not exist
	Details  json.RawMessage `json:"details,omitempty"`
	// Average age of the resource's calls in flight, in microseconds, or -1.
	Age     int64          `json:"age"`
	Running []runningCalls `json:"running"`         // the oldest calls in flight, in groups
	Alarm   *alarm         `json:"alarm,omitempty"` // current trouble; nil without trouble
	// Machine holds the measurements of the process, see [processMeter].
	Machine        [][]int64 `json:"machine"`
	MachineColumns []string  `json:"machine_columns,omitempty"`
	Table          *table    `json:"table,omitempty"` // nil if the last message had the same table
}

// table is a page of the table of resources.
type table struct {
	First     int64      `json:"first"` // Unix time of the first second
	End       int64      `json:"end"`   // Unix time after the last second
	Resources int        `json:"resources"`
	Matches   int        `json:"matches"` // number of resources that the search found
	Rows      []tableRow `json:"rows"`
}

// tableRow is a row of a table page. Name and Sparkline are omitted if the last message contained the row.
type tableRow struct {
	Number    int64        `json:"n"`
	Values    []int64      `json:"v"`
	Name      string       `json:"name,omitempty"`
	Sparkline []int64      `json:"past,omitempty"`    // the passes of the small chart
	Trouble   string       `json:"trouble,omitempty"` // description of the trouble
	Kind      trouble.Kind `json:"kind,omitempty"`    // the worst kind of it
}

// message returns the next message for a viewer, and updates the viewer.
func (f *feed) message(v *viewer) message {
	last, total := f.current()
	shown := last
	if v.rangeEnd > 0 {
		if shown = v.sentTable; shown == nil { // the table of a range never changes, so it is sent once
			shown = f.rangeSnapshot(v, last)
		}
	}
	began := time.Now()
	defer func() { v.spent += time.Since(began) }()
	epoch := f.startTime << 1
	if total.inbound {
		epoch++
	}
	m := message{
		Process: f.startTime, Inbound: total.inbound, Fresh: v.epoch != epoch,
		Now: f.wallMillis(), LastSecond: last.end - 1, Age: -1, Running: last.running,
	}
	if len(last.alarm.List) > 0 {
		m.Alarm = &last.alarm
	}
	if m.Fresh {
		v.position = position{epoch: epoch}
		m.Columns, m.MachineColumns = f.columns.names, processColumns[:]
	}
	m.Machine = f.process.after(v.last)
	m.Total, v.first, v.last = total.missing(v.first, v.last, last.end)
	m.After = v.position
	if v.resourceName != "" && v.resource == nil {
		all := f.stats.Seal().Resources
		named := func(r *collector.Resource) bool { return r.Name() == v.resourceName }
		if i := slices.IndexFunc(all, named); i >= 0 {
			v.resource = all[i]
		}
	}
	if v.resource != nil {
		f.addResource(v, last, &m)
	}
	if shown != v.sentTable && shown.end > 0 {
		m.Table = f.tablePage(shown, v)
	}
	return m
}

// addResource adds the open resource to a message: the seconds that the viewer lacks, and the details if they have
// changed. The details are read once a second for all viewers, because a call tree may be large.
func (f *feed) addResource(v *viewer, last *snapshot, m *message) {
	r := v.resource
	from := max(f.stats.Timeline().IndexAtOrAfter(time.Unix(v.resourceUntil, 1)), last.to-keptSeconds)
	if m.Resource = f.readSeconds(r.View(), from, last.to); len(m.Resource) > 0 {
		v.resourceUntil = m.Resource[len(m.Resource)-1][0]
	}
	read := sync.OnceValues(func() (json.RawMessage, time.Duration) { return f.readDetails(r) })
	once, _ := last.details.LoadOrStore(r, read)
	text, age := once.(func() (json.RawMessage, time.Duration))()
	if m.Age = f.columns.micros(age); !bytes.Equal(text, v.sentDetails) {
		m.Details, v.sentDetails = text, text
	}
}

// wallMillis returns the time on the timeline, where seconds have their wall-clock names, in milliseconds of Unix time.
func (f *feed) wallMillis() int64 {
	line := f.stats.Timeline()
	now := line.Now()
	second := line.At(now)
	return second.Name*1000 + now.Sub(second.Start).Milliseconds()
}

// tablePage returns the viewer's page of the table. If the last message was of the second before, the viewer extends
// the small charts of its rows with their new passes. Otherwise the page contains all names and small charts.
func (f *feed) tablePage(s *snapshot, v *viewer) *table {
	rows, matches := s.selectRows(v.query, f)
	t := &table{First: s.first, End: s.end, Resources: len(s.rows), Matches: matches, Rows: make([]tableRow, len(rows))}
	sent := v.sentTable
	consecutive := sent != nil && sent.end == s.end-1 && sent.to-sent.from == 1
	numbers := make(map[int64]bool, len(rows))
	for i, x := range rows {
		r := tableRow{Number: x.number, Values: f.columns.appendValues(nil, &x.sum, x.p99)}
		if len(x.troubles) > 0 {
			r.Trouble, r.Kind = trouble.Words(x.troubles), x.troubles[0].Kind
		}
		if !consecutive || !v.sentRows[x.number] {
			r.Name, r.Sparkline = x.Name(), s.sparkline(x.entry)
		}
		numbers[x.number], t.Rows[i] = true, r
	}
	v.sentTable, v.sentRows = s, numbers
	return t
}

// selectRows returns the rows of a page of the table, and the number of rows on all pages. Pinned rows come first,
// wherever the order puts them now, so a row does not move while a user is about to click it.
func (s *snapshot) selectRows(q query, f *feed) (rows []*row, matches int) {
	all := s.sorted(q.sortBy, f.columns)
	for _, n := range q.pinned {
		if x := s.row(n); x != nil {
			rows = append(rows, x)
		}
	}
	skip := q.offset
	for i := range all {
		x := all[i]
		if q.reverse {
			x = all[len(all)-1-i]
		}
		if q.search != "" && !strings.Contains(x.lowerName, q.search) {
			continue
		}
		matches++
		if skip--; skip < 0 && len(rows) < f.pageRows && !slices.Contains(q.pinned, x.number) {
			rows = append(rows, x)
		}
	}
	return rows, matches
}
