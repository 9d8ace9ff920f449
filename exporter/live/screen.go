package live

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
)

// screens are what viewers have on their screens in a second, made once for all that have the same.
type screens struct {
	at  atomic.Int64 // the second, 0 if it is not known
	mu  sync.Mutex   // guards all
	all map[table]*screen
}

func newScreens() *screens { return &screens{all: map[table]*screen{}} }

// of returns the screen of a table, which is made if need be.
func (s *screens) of(t table) *screen {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.all[t]
	if x == nil {
		x = &screen{}
		s.all[t] = x
	}
	return x
}

// made returns the screen of a table in a second, nil if nobody had it.
func (s *screens) made(t table, at int64) *screen {
	if s == nil || at == 0 || s.at.Load() != at {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.all[t]; x != nil && x.made.Load() {
		return x
	}
	return nil
}

// screen is a page of the table in a second.
type screen struct {
	once sync.Once
	made atomic.Bool
	rows []*row // in their order
	all  piece  // their numbers, and how many others there are

	onceWhole, onceChanged sync.Once
	whole, changed         piece // names and past of all rows; of those that were not there in the second before
}

// screen makes the screen of a table.
func (m *moment) screen(t table, f *feed) *screen {
	s := m.screens.of(t)
	s.once.Do(func() {
		var matches int
		s.rows, matches = m.choose(t, f)
		b := fmt.Appendf(nil, `"at":%d,"resources":%d,"matches":%d,"rows":[`, m.at, len(m.rows), matches)
		var h node.Histogram
		for i, x := range s.rows {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(append(b, '['), x.number, 10)
			b = append(f.columns.append(b, &x.m, m.p99(x, &h)), ']')
		}
		s.all = pieceOf(append(b, ']'))
		s.made.Store(true)
	})
	return s
}

// choose returns the rows on a page of the table, and how many there are on all pages.
func (m *moment) choose(t table, f *feed) (rows []*row, matches int) {
	all := m.sorted(t.by, f.columns)
	held, _ := numbers(t.held, f.rows) // queryOf has seen them
	for _, n := range held {
		if x := m.row(n); x != nil {
			rows = append(rows, x)
		}
	}
	skip := t.from
	for i := range all {
		x := all[i]
		if t.up {
			x = all[len(all)-1-i]
		}
		if !strings.Contains(x.lower, t.search) {
			continue
		}
		matches++
		if skip--; skip < 0 && len(rows) < f.rows && !slices.Contains(held, x.number) {
			rows = append(rows, x)
		}
	}
	return rows, matches
}

// rest is what a viewer needs beside the numbers: less if it drew the same table of the second before.
func (s *screen) rest(m *moment, t table, drawn int64) piece {
	if drawn == m.at {
		return nothingNew
	}
	before := m.before.made(t, drawn)
	if before == nil {
		s.onceWhole.Do(func() { s.whole = pieceOf(s.told(m, `,"whole":true`, nil)) })
		return s.whole
	}
	s.onceChanged.Do(func() { s.changed = pieceOf(s.told(m, "", before.rows)) })
	return s.changed
}

var nothingNew = small([]byte(`,"new":[]}`))

// told tells the name and the past of the rows that a viewer does not have.
func (s *screen) told(m *moment, head string, but []*row) []byte {
	had := make(map[int64]bool, len(but))
	for _, x := range but {
		had[x.number] = true
	}
	b := append([]byte(head), `,"new":[`...)
	first := true
	for _, x := range s.rows {
		if had[x.number] {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		name, _ := json.Marshal(x.Name()) // strings cannot fail
		b = append(append(strconv.AppendInt(append(b, '['), x.number, 10), ','), name...)
		for i, n := range x.past.until(m, x) {
			b = append(b, ',')
			if i == 0 {
				b = append(b, '[')
			}
			b = strconv.AppendInt(b, n, 10)
		}
		b = append(b, "]]"...)
	}
	return append(b, "]}"...)
}
