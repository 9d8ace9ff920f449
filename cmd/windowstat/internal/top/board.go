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
	rows    map[string]*row
	inbound *row  // all inbound traffic; nil if there was none
	newest  int64 // the last finished second, 0 while there is none
	left    int   // values of the last answer that did not fit
}

// row is the last minute of a resource, or of a total.
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
		b.inbound, b.newest = nil, 0
	}
	b.newest, b.left = max(b.newest, newest), 0
	for _, s := range samples {
		if s.unix > b.newest || s.unix <= b.newest-minute {
			continue
		}
		r := b.row(s.resource)
		if r == nil {
			b.left++
			continue
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
	if b.inbound != nil && b.inbound.last <= b.newest-minute {
		b.inbound = nil
	}
}

// row returns the row of a resource or of all inbound traffic, a new one if there is none, nil if there is no room for it.
func (b *board) row(resource string) *row {
	if resource == inbound {
		if b.inbound == nil {
			b.inbound = &row{shown: kindInbound}
		}
		return b.inbound
	}
	r := b.rows[resource]
	if r == nil && len(b.rows) < maxResources {
		r = &row{name: resource, shown: clean(resource)}
		b.rows[resource] = r
	}
	return r
}

// at returns a second of the row; all its values are unknown if there is none.
func (r *row) at(unix int64) second {
	if x := r.seconds[((unix%minute)+minute)%minute]; x.unix == unix {
		return x.told()
	}
	return unknown(unix)
}

// now returns the last second of the row, with the highest peak of its last minute.
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

// total returns the total of the service: all inbound traffic, or else the sum of the resources.
func (b *board) total() line {
	if b.inbound != nil {
		return b.line(b.inbound)
	}
	return b.line(b.sum())
}

// sum returns the sum of the resources. A call below another one counts again, so it is no total; where nothing is inbound
// there is none.
func (b *board) sum() *row {
	all := &row{shown: kindSum, last: b.newest}
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
			told := s.told()
			x.add(&told)
		}
	}
	return all
}

// The kinds of lines. The total is one of the first two, and shown by that name.
const (
	kindInbound  = "inbound"
	kindSum      = "sum"
	kindResource = "resource"
)

// line is the last second of a row.
type line struct {
	row    *row
	second second
	stale  bool // there is a newer second without it
}

func (b *board) line(r *row) line { return line{row: r, second: r.now(), stale: r.last < b.newest} }

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
			list = append(list, b.line(r))
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
