package top

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// The kinds of lines.
const (
	kindInbound  = "inbound" // the total
	kindResource = "resource"
)

// line is a line of the table in one second: a resource, or the total, of one target or added up.
type line struct {
	name, shown string
	target      string // empty if several are added up
	parts       []part
	second      second
	stale       bool // no target has this second of it
}

// part is the row of one target.
type part struct {
	*target
	row *row
}

// of makes the line of some rows.
func of(at int64, apart bool, parts ...part) line {
	l := line{name: parts[0].row.name, shown: parts[0].row.shown, parts: parts}
	if apart {
		l.target = parts[0].target.name
	}
	if l.second, l.stale = l.at(at); l.stale { // as it was
		l.second = sum(parts, func(r *row) (second, bool) { return r.before(at), true })
	}
	l.second.values[peak] = math.NaN()
	for _, p := range parts {
		if v := p.row.peak(at); !(v <= l.second.values[peak]) && !math.IsNaN(v) {
			l.second.values[peak] = v
		}
	}
	return l
}

// at returns a second, of the targets that have it. It is not known if none has.
func (l *line) at(unix int64) (s second, stale bool) {
	s = sum(l.parts, func(r *row) (second, bool) { return r.at(unix) })
	return s, s.unix == 0
}

// sum adds up a second of some rows. It is the second 0 if none has it.
func sum(parts []part, of func(*row) (second, bool)) second {
	all := unknown(0)
	for _, p := range parts {
		switch s, there := of(p.row); {
		case !there:
		case all.unix == 0:
			all = s
		default:
			all.add(&s)
		}
	}
	return all
}

// passes returns those of the n seconds up to until, oldest first; NaN where nothing is known.
func (l *line) passes(until int64, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		s, _ := l.at(until - int64(n-1-i))
		list[i] = s.values[pass]
	}
	return list
}

// totals returns the lines of the inbound calls in a second.
func totals(targets []*target, at int64, apart bool) (list []line) {
	var parts []part
	for _, t := range targets {
		if t.inbound != nil && t.inbound.recent(at) {
			parts = append(parts, part{t, t.inbound})
		}
	}
	if apart {
		for _, p := range parts {
			list = append(list, of(at, true, p))
		}
	} else if len(parts) > 0 {
		list = append(list, of(at, false, parts...))
	}
	return list
}

// order is how a table is sorted.
type order struct {
	column  int // of columns
	reverse bool
}

// table returns the resources in a second whose names contain the filter, ignoring case, in order: the highest numbers first, names
// from a to z. Resources without a value, or without this second, come last.
func table(targets []*target, at int64, apart bool, o order, filter string) []line {
	filter = strings.ToLower(filter)
	var list []line
	together := map[string][]part{}
	for _, t := range targets {
		for _, r := range t.rows {
			switch p := (part{t, r}); {
			case !r.recent(at) || !r.has(filter):
			case apart || len(targets) == 1:
				list = append(list, of(at, apart, p))
			default:
				together[r.name] = append(together[r.name], p)
			}
		}
	}
	for _, parts := range together {
		list = append(list, of(at, false, parts...))
	}
	o.sort(list)
	return list
}

// has reports whether the name contains a filter in lower case.
func (r *row) has(filter string) bool { return strings.Contains(strings.ToLower(r.shown), filter) }

func (o order) sort(list []line) {
	sign := 1
	if o.reverse {
		sign = -1
	}
	value := columns[o.column].value
	slices.SortFunc(list, func(x, y line) int {
		byName := cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.target, y.target))
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
