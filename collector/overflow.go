package collector

import (
	"maps"
	"sync"

	"github.com/windowstat/windowstat/node"
)

// names are the names that another resource counts, [Other] or one of [CountedAs], and that a pattern limits, each with a
// limiter of its own. They are at most Options.MaxResources. When there are as many, the longest idle one makes room; a name is idle if nothing is in flight
// and nothing was for some seconds, longer than any quota remembers. If none is idle, further names share a
// limiter for each pattern that they match; a name with a call in flight there stays there until that has ended, and a name
// that leaves it begins with all that passed there in the last second, because some of that may be its own.
//
// Locks are taken in the order of the collector's mu, the limiter of the resource that counts, mu, limiters.
type names struct {
	c *Collector

	mu     sync.Mutex
	rules  *ruleSet
	age    int // how often they were replaced
	byName map[string]*limiter
	idle   limiter             // the root of a ring of limiters without pins, from the longest idle one on
	common map[string]*limiter // by pattern
	crowd  map[string]int      // calls in flight of the names that share them
}

// idleAfter is after how many seconds, the present one included, a name is idle: a strict quota with one bucket looks back for
// two, and passes are borrowed for another half.
const idleAfter = 5

func newNames(c *Collector) *names {
	n := &names{c: c, rules: c.limits.Load(), byName: map[string]*limiter{}, common: map[string]*limiter{}, crowd: map[string]int{}}
	n.idle.slot = &slot{prev: &n.idle, next: &n.idle}
	return n
}

// slot is the place of a limiter in the table of names, see [names].
type slot struct {
	name   string
	common bool // it is for many names that match a pattern, which is its name
	moved  bool // the name has a resource now; changes under both locks
	age    int  // of the limits that the rules were made of; guarded by the limiter's mu

	// Guarded by the table's lock:
	pins       int      // calls in flight, or waiting, or being decided about
	used       bool     // a call has passed
	last       int64    // the second in which the last of the pins went
	prev, next *limiter // in the list of those without pins
}

// unlink takes a limiter out of the ring of idle ones, if it is there.
func (s *slot) unlink() {
	if s.next != nil {
		s.prev.slot.next, s.next.slot.prev = s.next, s.prev
		s.prev, s.next = nil, nil
	}
}

// rest puts a limiter at the end of the ring. Holds mu.
func (n *names) rest(m *limiter) {
	root := n.idle.slot
	m.slot.prev, m.slot.next = root.prev, &n.idle
	root.prev.slot.next = m
	root.prev = m
}

// second is the one that was opened last. It does not read the clock.
func (n *names) second() int64 { return n.c.line.At(0).Index }

// reservation is what a call of such a name holds while it is decided about, waits, or is in flight. A nil one holds nothing.
type reservation struct {
	place
	names *names
	name  string
	rules *ruleSet // in force when the call came
	age   int
	list  []*limiter  // where it counts
	room  [1]*limiter // for the list
	all   [2]*limiter // for the list with the limiter of the resource that counts
	taken bool        // the limiters count the call in flight
}

// set replaces the limits.
func (n *names) set(rules *ruleSet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rules = rules
	n.age++
	maps.DeleteFunc(n.common, func(pattern string, m *limiter) bool {
		return m.all.inFlight.Load() == 0 && len(rules.at[pattern]) == 0
	})
	if len(rules.patterns) > 0 {
		return
	}
	for n.forget() {
		continue // until the rest is busy
	}
}

// reserve finds the limiters of a call that the leaf counts, nil if no pattern is for its name. It returns errMoved if the name
// has a resource of its own by now, which the call must go to.
func (n *names) reserve(name string, l *leaf) (*reservation, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.byName[name]
	var patterns []string
	if m == nil {
		if r, there := n.c.byName.Load(name); there && r != l.resource {
			return nil, errMoved
		}
		if patterns = n.rules.matching(name); len(patterns) == 0 { // in the order in which their limiters are locked
			return nil, nil
		}
		m = n.make(name, patterns)
	}
	p := &reservation{names: n, name: name, rules: n.rules, age: n.age}
	p.place = place{leaf: l, reserved: p}
	if m == nil {
		n.crowd[name]++
		for _, pattern := range patterns {
			p.list = append(p.list, n.share(pattern))
		}
		return p, nil
	}
	m.slot.pins++
	m.slot.unlink()
	p.room[0] = m
	p.list = p.room[:]
	return p, nil
}

// make makes a limiter, nil if there is no room. Holds mu.
func (n *names) make(name string, patterns []string) *limiter {
	if n.crowd[name] > 0 || len(n.byName) >= n.c.opts.MaxResources && !n.forget() {
		return nil
	}
	m := &limiter{slot: &slot{name: name}}
	m.all.passes = n.passes("", nil)
	for _, pattern := range patterns {
		if common := n.common[pattern]; common != nil {
			common.mu.Lock()
			m.all.passes.Add(common.all.passes)
			for origin, x := range common.origins {
				if x.passes != nil {
					m.meter(origin).passes = n.copied(x.passes)
				}
			}
			common.mu.Unlock()
			break
		}
	}
	n.byName[name] = m
	return m
}

// copied are the same passes, which are counted on for themselves.
func (n *names) copied(q *node.Quota) *node.Quota {
	x := n.passes("", nil)
	x.Add(q)
	return x
}

// passes are those of a name or an origin of which nothing is known.
func (n *names) passes(string, *meter) *node.Quota { return node.NewQuota(n.c.shape, 0, true) }

// share is the limiter of the names that have none of their own and match the pattern. Holds mu.
func (n *names) share(pattern string) *limiter {
	m := n.common[pattern]
	if m == nil {
		m = &limiter{slot: &slot{name: pattern, common: true}}
		m.all.passes = n.passes("", nil)
		n.common[pattern] = m
	}
	return m
}

// forget makes room: the longest idle name goes. It reports false if no name is idle. Holds mu.
func (n *names) forget() bool {
	m := n.idle.slot.next
	if m == &n.idle || n.second()-m.slot.last < idleAfter {
		return false
	}
	n.drop(m)
	return true
}

// drop takes a name out of the table. Holds mu.
func (n *names) drop(m *limiter) {
	delete(n.byName, m.slot.name)
	m.slot.unlink()
}

// move takes the limiter of a name out of the table, for the resource that the name gets; nil if there is none. Holds mu,
// until the resource can be found.
func (n *names) move(name string) *limiter {
	m := n.byName[name]
	if m != nil {
		n.drop(m)
		m.mu.Lock()
		m.slot.moved = true
		m.all.before = n.copied(m.all.passes)
		for _, x := range m.origins {
			if x.passes != nil {
				x.before = n.copied(x.passes)
			}
		}
		m.mu.Unlock()
	}
	return m
}

// refresh gives a limiter those of the rules that are for it. Holds the limiter's mu.
func (n *names) refresh(m *limiter, rules *ruleSet, age int) {
	s := m.slot
	if s.moved || s.age >= age {
		return
	}
	s.age = age
	patterns := []string{s.name}
	if !s.common {
		patterns = rules.matching(s.name)
	}
	m.set(rules.forAny(patterns), n.passes)
}

// lock locks the limiters, with the rules that were in force when the call came, or later ones.
func (p *reservation) lock() {
	for _, m := range p.list {
		m.mu.Lock()
		p.names.refresh(m, p.rules, p.age)
	}
}

// take counts the call in flight. Holds the limiters' locks.
func (p *reservation) take() {
	if p == nil {
		return
	}
	p.taken = true
	for _, m := range p.list {
		m.take(p.leaf.origin, p.names.passes)
	}
}

// release ends a call: in flight, cancelled while it waited, or refused.
func (p *reservation) release() {
	if p == nil {
		return
	}
	used := p.taken
	if used {
		for _, m := range p.list {
			m.mu.Lock()
			m.put(p.leaf.origin)
			m.mu.Unlock()
		}
	}
	n := p.names
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.list[0].slot.common {
		if n.crowd[p.name]--; n.crowd[p.name] == 0 {
			delete(n.crowd, p.name)
		}
		return
	}
	m := p.list[0]
	s := m.slot
	s.used = s.used || used
	switch s.pins--; {
	case s.pins > 0 || s.moved:
	case !s.used:
		n.drop(m)
	default:
		s.last = n.second()
		n.rest(m)
	}
}
