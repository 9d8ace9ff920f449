package collector

import (
	"maps"
	"sync"
)

// names are the names that another resource counts, [Other] or one of [CountedAs], and that a pattern limits, each with a
// limiter of its own. They are at most Options.MaxResources; a further one evicts those that are idle: nothing is in
// flight and nothing passed for some seconds, longer than any quota remembers. If none is, further names share a
// limiter for each pattern that they match; a name that leaves it begins with all that passed there in the last second, because
// some of that may be its own.
//
// Locks are taken in the order of the collector's mu, the limiter of the resource that counts, mu, limiters.
type names struct {
	c *Collector

	mu     sync.Mutex
	byName map[string]*limiter
	common map[string]*limiter // by pattern
	swept  int64               // the second in which idle ones were looked for last
}

// idleAfter is after how many seconds, the present one included, a name is idle: a strict quota with one bucket looks back for
// two, and passes are borrowed for another half.
const idleAfter = 5

func newNames(c *Collector) *names {
	return &names{c: c, byName: map[string]*limiter{}, common: map[string]*limiter{}}
}

// second is the one that was opened last. It does not read the clock.
func (c *Collector) second() int64 { return c.line.At(0).Index }

// reserve makes the reservation of a call that the leaf counts, whose resource has the limiter own. It is nil if no pattern is for
// the call's name. It returns errMoved if the name has a resource of its own by now.
func (n *names) reserve(name string, l *leaf, own *limiter) (*reservation, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.byName[name]
	var patterns []string
	if m == nil {
		if r, there := n.c.byName.Load(name); there && r != l.resource {
			return nil, errMoved
		}
		if patterns = n.c.limits.Load().matching(name); len(patterns) == 0 { // in the order in which their limiters are locked
			return nil, nil
		}
		m = n.make(name, patterns)
	}
	r := new(reservation)
	r.place = place{leaf: l, reserved: r}
	if r.list = append(r.array[:0], own); m != nil {
		r.list = append(r.list, m)
		return r, nil
	}
	for _, pattern := range patterns {
		if n.common[pattern] == nil {
			n.common[pattern] = newLimiter(n.c, pattern, true)
		}
		r.list = append(r.list, n.common[pattern])
	}
	return r, nil
}

// make makes a limiter, nil if there are as many as allowed. Holds mu.
func (n *names) make(name string, patterns []string) *limiter {
	if len(n.byName) >= n.c.opts.MaxResources {
		if n.sweep(); len(n.byName) >= n.c.opts.MaxResources {
			return nil
		}
	}
	m := newLimiter(n.c, name, false)
	for _, pattern := range patterns {
		if common := n.common[pattern]; common != nil {
			common.mu.Lock()
			m.inherit(n.c, &common.quotas)
			m.dry.inherit(n.c, &common.dry)
			common.mu.Unlock()
			break
		}
	}
	n.byName[name] = m
	return m
}

// sweep drops idle names, once a second at most. Holds mu.
func (n *names) sweep() {
	now := n.c.second()
	if n.swept == now {
		return
	}
	n.swept = now
	maps.DeleteFunc(n.byName, func(_ string, m *limiter) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.dropped = now-m.last >= idleAfter && m.all.inFlight.Load() == 0
		return m.dropped
	})
}

// dropUnused drops the limiter of a name whose calls were all refused: it takes no place from others.
func (n *names) dropUnused(m *limiter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if n.byName[m.name] == m && m.last == 0 {
		m.dropped = true
		delete(n.byName, m.name)
	}
}

// refresh forgets what no limit is for any more. Who is in the table gets new limits with the next call.
func (n *names) refresh() {
	rules := n.c.limits.Load()
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.common, func(pattern string, m *limiter) bool {
		return m.all.inFlight.Load() == 0 && len(rules.at[pattern]) == 0
	})
	n.sweep()
}

// move takes the limiter of a name out of the table, for the resource that the name gets; nil if there is none. Holds mu,
// until the resource can be found.
func (n *names) move(name string) *limiter {
	m := n.byName[name]
	if m != nil {
		delete(n.byName, name)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.name = ""
		m.all.before = n.c.copied(m.all.passes)
		for _, x := range m.origins {
			if x.passes != nil {
				x.before = n.c.copied(x.passes)
			}
		}
	}
	return m
}
