package live

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// feed is what viewers are sent. All that is long is made once for all viewers who want the same, by the first of them, and
// nothing is read under a lock that others need: who wants a part waits for who makes it.
type feed struct {
	stats   *collector.Collector
	rows    int // on a page of the table
	columns *columns
	process int64 // differs between processes

	mu        sync.Mutex // guards what follows; nothing is read under it
	now       *moment
	inbound   bool // the total is of inbound calls; while there are none, of the background: all outermost calls
	total     *series
	resources map[string]*series // that somebody has open
}

func newFeed(c *collector.Collector, rows int) *feed {
	f := &feed{
		stats: c, rows: rows, columns: columnsOf(inFeed, c.DurationsUnknown()),
		process: time.Now().UnixMilli(), resources: map[string]*series{},
	}
	f.total = f.series(c.Tree().View(), backTotal)
	return f
}

// series makes the series of a view, which reads so many seconds of what was before.
func (f *feed) series(v collector.View, back int64) *series {
	return &series{line: f.stats.Timeline(), columns: f.columns, view: v, back: back}
}

// present returns the moment of the last sealed second, and the series of the total.
func (f *feed) present() (m *moment, total *series, inbound bool) {
	line := f.stats.Timeline()
	open := line.At(line.Now()).Index
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil || f.now.open < open {
		f.now = newMoment(open, f.now)
		if v := f.stats.Inbound().Node(); !f.inbound && v.Used() {
			f.inbound, f.total = true, f.series(f.stats.Inbound(), backTotal)
		}
		for name, s := range f.resources {
			if s.used < open-mostCatchedUp {
				delete(f.resources, name)
			}
		}
	}
	return f.now, f.total, f.inbound
}

// resource returns the series of a resource, nil if there is none of this name.
func (f *feed) resource(m *moment, name string) *series {
	f.mu.Lock()
	s := f.resources[name]
	f.mu.Unlock()
	if s == nil {
		r := m.find(name)
		if r == nil {
			return nil
		}
		s = f.series(r.View(), backResource)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.resources[name]; other != nil {
		s = other
	}
	f.resources[name], s.used = s, m.open
	return s
}

// message returns what a viewer lacks, as JSON behind a prefix with its brace, and what it has then. A viewer whose epoch is
// another one, of another process or of another total, gets everything:
//
//	{"process":…,"inbound":…,"fresh":…,"columns":[…],"total":[second,…],"resource":[second,…],
//	 "at":…,"resources":…,"matches":…,"rows":[[number,columns…],…],"whole":…,"new":[[number,name,[pass,…]],…]}
//
// A second is [time,columns…]. columns are only there if fresh, and resource only if the query has one that is there. Of the
// table there are the second, how many rows there are and how many match the search, and those on the page. What is new on it,
// or everything if it is whole, has a name and the passes of the last minute.
func (f *feed) message(q query, p position, prefix func(position) string) (pieces, position) {
	m, total, inbound := f.present()
	m.read(f.stats)
	total.until(m.open)
	epoch := f.process << 1
	if inbound {
		epoch++
	}
	fresh := p.epoch != epoch
	if fresh {
		p = position{epoch: epoch}
	}
	list, drawn := pieces(nil), p.drawn
	list, p.first, p.last = total.after(p.first, p.last, m.at)
	p.drawn = m.at
	b := fmt.Appendf([]byte(prefix(p)), `"process":%d,"inbound":%t,"fresh":%t`, f.process, inbound, fresh)
	if fresh {
		names, _ := json.Marshal(f.columns.names) // strings cannot fail
		b = fmt.Appendf(b, `,"columns":%s`, names)
	}
	all := append(pieces{small(append(b, `,"total":[`...))}, list...)
	if s := f.opened(m, q.resource); s != nil {
		s.until(m.open)
		if filled := s.fill(0); filled != nil {
			<-filled // who has the same open waits for it
		}
		seconds, _, _ := s.after(1, drawn, m.at)
		if drawn == 0 {
			seconds, _, _ = s.after(0, 0, m.at)
		}
		all = append(append(all, resourcePiece), seconds...)
	}
	s := m.screen(q.table, f)
	return append(all, tablePiece, s.all, s.rest(m, q.table, drawn)), p
}

// fill has the total's past read, see [series.fill].
func (f *feed) fill(first int64) <-chan struct{} {
	m, total, _ := f.present()
	total.until(m.open)
	return total.fill(first)
}

// opened is the series of the resource that a viewer has open, nil if it has none, or there is none of this name.
func (f *feed) opened(m *moment, name string) *series {
	if name == "" {
		return nil
	}
	return f.resource(m, name)
}

// Pieces of all messages.
var (
	resourcePiece = small([]byte(`],"resource":[`))
	tablePiece    = small([]byte(`],`))
	eventEnd      = small([]byte("\n\n"))
)
