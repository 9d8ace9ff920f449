package collector

import "github.com/windowstat/windowstat/leap"

// NewOn is New on a timeline whose two clocks a test sets apart.
func NewOn(line *leap.Timeline, o Options) (*Collector, error) { return newOn(line, o) }

// SealAt is Seal with a reading of the clock that was taken some time ago.
func (c *Collector) SealAt(now leap.Reading) Moment { return c.seal(now) }

// LimitedNames is how many names that other resources count have limiters of their own.
func LimitedNames(c *Collector) int {
	n := c.names
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.byName)
}

// RulesOf is the rules of a resource.
func RulesOf(r *Resource) (list []Limit) {
	r = r.now()
	if m := r.limiter.Load(); m != nil {
		list = m.limits()
	}
	return list
}

// RulesOfName is the rules of a name that another resource counts.
func RulesOfName(c *Collector, name string) []Limit {
	n := c.names
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.byName[name]
	if m == nil {
		return nil
	}
	return m.limits()
}
