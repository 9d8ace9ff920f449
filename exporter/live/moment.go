package live

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// moment is the last second of all resources, as the table shows it. Each part is made when it is first wanted; who wants it
// too waits for that, and for nothing else.
type moment struct {
	open    int64    // the index of the second after it
	screens *screens // of this second
	before  *screens // of the second before, nil if nobody looked

	once     sync.Once
	last     *moment // the one before, until this one is read
	at       int64   // its Unix time; 0 if it must not be handed out
	entries  []*entry
	numbered int64 // the last number of an entry
	rows     []row // of those entries that were there in this second

	mu     sync.Mutex // guards orders
	orders map[string]*order
}

// entry is a resource with its number, which stands for it as long as it lives and is greater than those before it.
type entry struct {
	*collector.Resource
	number int64
	lower  string // the name in lower case, for searches
	past   past
}

// row is a second of a resource.
type row struct {
	*entry
	m node.MetricNode
}

// newMoment makes the moment after the last one, which is nil if there was none.
func newMoment(open int64, last *moment) *moment {
	m := &moment{open: open, last: last, screens: newScreens(), orders: map[string]*order{}}
	if last != nil && last.open == open-1 {
		m.before = last.screens
	}
	return m
}

// read reads the second of each resource.
func (m *moment) read(stats *collector.Collector) {
	m.once.Do(func() {
		var known []*entry
		if m.last != nil {
			m.last.read(stats)
			known, m.numbered, m.last = m.last.entries, m.last.numbered, nil
		}
		resources := stats.Seal().Resources
		m.entries = make([]*entry, 0, len(resources))
		for _, r := range resources { // the oldest first, as those that are known
			for len(known) > 0 && known[0].Resource != r {
				known = known[1:] // it was retired
			}
			if len(known) > 0 {
				m.entries, known = append(m.entries, known[0]), known[1:]
				continue
			}
			m.numbered++
			m.entries = append(m.entries, &entry{Resource: r, number: m.numbered, lower: strings.ToLower(r.Name())})
		}
		name, ok := stats.Timeline().Name(m.open - 1)
		if !ok {
			return
		}
		m.at = name.Unix()
		m.screens.at.Store(m.at)
		m.rows = make([]row, 0, len(m.entries))
		for _, e := range m.entries {
			if second, ok := e.View().Node().Second(m.open - 1); ok {
				m.rows = append(m.rows, row{e, second})
			}
		}
	})
}

// row finds the row of a resource by its number, nil if there is none.
func (m *moment) row(number int64) *row {
	i, ok := slices.BinarySearchFunc(m.rows, number, func(x row, n int64) int { return cmp.Compare(x.number, n) })
	if !ok {
		return nil
	}
	return &m.rows[i]
}

// find finds a resource by its name, nil if there is none.
func (m *moment) find(name string) *collector.Resource {
	for _, e := range m.entries {
		if e.Name() == name {
			return e.Resource
		}
	}
	return nil
}

// p99 is that of a row, none if nothing ended or it is not known.
func (m *moment) p99(x *row, h *node.Histogram) time.Duration {
	if x.m.Complete > 0 && x.View().Node().Histogram(m.open-1, m.open, h) && h.Count() > 0 {
		return h.Quantile(0.99)
	}
	return none
}

// order is the rows sorted by a column.
type order struct {
	once sync.Once
	rows []*row
}

// sorted is the rows by a column, the greatest first; by name from A.
func (m *moment) sorted(by string, c *columns) []*row {
	m.mu.Lock()
	o := m.orders[by]
	if o == nil {
		o = &order{}
		m.orders[by] = o
	}
	m.mu.Unlock()
	o.once.Do(func() {
		type item struct {
			*row
			value int64
		}
		items := make([]item, len(m.rows))
		value := m.value(by, c)
		for i := range m.rows {
			items[i] = item{&m.rows[i], value(&m.rows[i])}
		}
		slices.SortFunc(items, func(a, b item) int {
			return cmp.Or(cmp.Compare(b.value, a.value), strings.Compare(a.lower, b.lower), cmp.Compare(a.number, b.number))
		})
		o.rows = make([]*row, len(items))
		for i := range items {
			o.rows[i] = items[i].row
		}
	})
	return o.rows
}

// value returns what a row is sorted by.
func (m *moment) value(by string, c *columns) func(*row) int64 {
	var h node.Histogram
	switch by {
	case byName:
		return func(*row) int64 { return 0 }
	case byPeak:
		return func(x *row) int64 { return slices.Max(x.past.until(m, x)) }
	case rtP99:
		return func(x *row) int64 { return int64(m.p99(x, &h)) }
	case rtAvg:
		return func(x *row) int64 {
			if x.m.Complete == 0 {
				return int64(none)
			}
			return int64(x.m.AvgRT())
		}
	}
	at := c.list[slices.Index(c.names, by)].At
	return func(x *row) int64 { return *at(&x.m) }
}

// minute is how many seconds the small charts show.
const minute = 60

// past is the passes of a resource in the last minute, kept for those that are shown, or sorted by it.
type past struct {
	mu     sync.Mutex
	open   int64   // the second after the last one
	passes []int64 // ascending, at most a minute
}

// until returns the passes until a moment, whose row this is.
func (p *past) until(m *moment, x *row) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.passes != nil && p.open == m.open:
	case p.passes != nil && p.open == m.open-1:
		if p.passes = append(p.passes, x.m.Pass); len(p.passes) > minute {
			p.passes = slices.Delete(p.passes, 0, 1)
		}
		p.open = m.open
	default:
		var room [minute]node.MetricNode
		var passes []int64
		for _, second := range x.View().Node().AppendSeconds(room[:0], m.open-minute, m.open) {
			passes = append(passes, second.Pass)
		}
		if len(passes) == 0 { // its name was retired meanwhile
			passes = []int64{x.m.Pass}
		}
		if p.open > m.open {
			return passes // of a moment that is over already
		}
		p.open, p.passes = m.open, passes
	}
	return slices.Clone(p.passes)
}
