package top

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// key identifies a line: a resource or all inbound traffic, of one target or, without a target, of all targets
// together.
type key struct{ name, target string }

// line is a line of the table.
//
// A line refers to its targets instead of a copy of their seconds. Its graph and its peak read the history when the
// line is drawn.
type line struct {
	key
	scope  []*target // targets whose seconds are added up
	shown  string    // the name, cleaned
	unix   int64     // the second
	values values
	by     float64 // sort value
}

// newLine creates the line of a second. Lines are not kept, because adding up a resource is cheap.
func newLine(k key, scope []*target, unix int64) line {
	l := line{key: k, scope: scope, shown: clean(k.name), unix: unix}
	if k.name == inbound {
		l.shown = kindInbound
	}
	l.values = l.at(unix)
	return l
}

// mean returns the average response time in seconds, or NaN (0 divided by 0) if no call ended.
func (l *line) mean() float64 { return l.values[rtSum] / l.values[complete] }

// peak returns the highest peak of any target in the minute that ends with the second. It reads sixty seconds, so it is
// called only for lines on the screen, or if the table is sorted by it.
func (l *line) peak() float64 {
	most := l.values[peak]
	for unix := l.unix - minute + 1; unix < l.unix; unix++ {
		for _, t := range l.scope {
			if v, there := t.seconds[unix][l.name]; there {
				most = highest(most, v[peak])
			}
		}
	}
	return most
}

// at adds up a second of the targets that have it. Without any such target, all values are unknown.
//
// A process that has no row for the resource in this second adds nothing, as if its values were 0. A value that is NaN
// in one row makes the sum NaN, because a sum without that process would be wrong; see [values.add] for peaks and
// quantiles.
func (l *line) at(unix int64) values {
	sum, first := unknown, true
	for _, t := range l.scope {
		switch v, there := t.seconds[unix][l.name]; {
		case there && first:
			sum, first = v.whole(), false
		case there:
			sum.add(v.whole())
		}
	}
	return sum
}

// passes returns the passes of the n seconds up to the second of the line, oldest first. Unknown seconds are NaN.
func (l *line) passes(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		v := l.at(l.unix - int64(n-1-i))
		list[i] = v[pass]
	}
	return list
}

// table holds the lines of a second.
type table struct {
	totals []line // inbound calls, if the service has any
	lines  []line // resources that match the filter
}

// newTable returns the table of a second: each resource of any target whose name contains the filter, ignoring case. If
// apart is set, each target has separate lines; otherwise they are added up.
func newTable(targets []*target, unix int64, apart bool, o order, filter string) (x table) {
	size := len(targets)
	if apart {
		size = 1
	}
	// Each scope has one target if apart is set. Otherwise a single scope has all targets.
	for scope := range slices.Chunk(targets, size) {
		var k key
		if apart {
			k.target = scope[0].name
		}
		names := map[string]bool{}
		for _, t := range scope {
			for name := range t.seconds[unix] {
				names[name] = true
			}
		}
		for k.name = range names {
			l := newLine(k, scope, unix)
			if k.name == inbound {
				x.totals = append(x.totals, l)
			} else if strings.Contains(strings.ToLower(l.shown), strings.ToLower(filter)) {
				x.lines = append(x.lines, l)
			}
		}
	}
	// Totals are always sorted by target. Column 0 has the same value for all lines, so names and targets decide.
	order{}.sort(x.totals)
	o.sort(x.lines)
	return x
}

// order defines the sort column of a table, and its direction.
type order struct {
	column  int // of columns
	reverse bool
}

// sort sorts lines: the highest numbers first, names from A to Z. Lines without a value come last.
func (o order) sort(list []line) {
	sign := 1
	if o.reverse {
		sign = -1
	}
	for i := range list {
		list[i].by = columns[o.column].value(&list[i])
	}
	slices.SortFunc(list, func(x, y line) int {
		if math.IsNaN(x.by) != math.IsNaN(y.by) {
			return cmp.Compare(y.by, x.by) // NaN sorts before all numbers
		}
		return sign * cmp.Or(cmp.Compare(y.by, x.by), cmp.Compare(x.name, y.name), cmp.Compare(x.target, y.target))
	})
}
