package top

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// minute is how many seconds are kept.
const minute = 60

// maxResources is how many resources are kept: twice the default of a Collector.
const maxResources = 20_000

// board is the last minute of all resources.
type board struct {
	rows   map[string]*row
	newest int64 // the last finished second, 0 while there is none
	left   int   // values of the last answer that did not fit
}

// row is the last minute of a resource.
type row struct {
	name    string
	shown   string // the name, cleaned
	last    int64  // its newest second
	seconds [minute]second
}

func newBoard() *board { return &board{rows: map[string]*row{}} }

// add adds the samples of an answer up to the second newest, and drops what is older than a minute.
func (b *board) add(samples []sample, newest int64) {
	if newest < b.newest-minute { // the clock of the endpoint was set back
		clear(b.rows)
		b.newest = 0
	}
	b.newest, b.left = max(b.newest, newest), 0
	for _, s := range samples {
		if s.unix > b.newest || s.unix <= b.newest-minute || s.resource == "" { // no resource of windowstat has no name
			continue
		}
		r := b.rows[s.resource]
		if r == nil {
			if len(b.rows) >= maxResources {
				b.left++
				continue
			}
			r = &row{name: s.resource, shown: clean(s.resource)}
			b.rows[s.resource] = r
		}
		r.last = max(r.last, s.unix)
		x := &r.seconds[s.unix%minute]
		if x.unix != s.unix {
			*x = unknown(s.unix)
		}
		x.values[s.metric] = s.value
	}
	for name, r := range b.rows {
		if r.last <= b.newest-minute {
			delete(b.rows, name)
		}
	}
}

// at returns a second of the resource; all its values are unknown if there is none.
func (r *row) at(unix int64) second {
	if x := r.seconds[((unix%minute)+minute)%minute]; x.unix == unix {
		return x
	}
	return unknown(unix)
}

// now returns the last second of the resource, with the highest peak of its last minute.
func (r *row) now() second {
	now := r.at(r.last)
	for i := range r.seconds {
		if s := &r.seconds[i]; s.unix > r.last-minute && !(s.values[peak] <= now.values[peak]) && !math.IsNaN(s.values[peak]) {
			now.values[peak] = s.values[peak]
		}
	}
	return now
}

// history returns the n seconds up to until, oldest first.
func (r *row) history(until int64, n int) []second {
	list := make([]second, n)
	for i := range list {
		list[i] = r.at(until - int64(n-1-i))
	}
	return list
}

// total returns the sum of all resources.
func (b *board) total() *row {
	all := &row{shown: "all", last: b.newest}
	for _, r := range b.rows {
		for i := range r.seconds {
			s := &r.seconds[i]
			if s.unix <= b.newest-minute {
				continue
			}
			x := &all.seconds[s.unix%minute]
			if x.unix != s.unix {
				*x = unknown(s.unix)
			}
			x.add(s)
		}
	}
	return all
}

// order is how a table is sorted.
type order struct {
	column  int // of columns
	reverse bool
}

// table returns the resources whose names contain the filter, ignoring case, in order: the highest numbers first, names
// from a to z. Resources without a value, or without the newest second, come last.
func (b *board) table(o order, filter string) []line {
	filter = strings.ToLower(filter)
	list := make([]line, 0, len(b.rows))
	for _, r := range b.rows {
		if strings.Contains(strings.ToLower(r.shown), filter) {
			list = append(list, line{row: r, second: r.now(), stale: r.last < b.newest})
		}
	}
	sign := 1
	if o.reverse {
		sign = -1
	}
	value := columns[o.column].value
	slices.SortFunc(list, func(x, y line) int {
		byName := cmp.Compare(x.row.name, y.row.name)
		if value == nil {
			return sign * byName
		}
		v, w := value(&x.second), value(&y.second)
		return cmp.Or(
			compare(x.stale, y.stale),
			compare(math.IsNaN(v), math.IsNaN(w)),
			sign*cmp.Compare(w, v),
			byName,
		)
	})
	return list
}

// line is a resource in a table.
type line struct {
	row    *row
	second second
	stale  bool
}

// compare orders booleans, false first.
func compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
