package collector

import (
	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// NewOn is New with a given timeline, whose clocks a test controls separately.
func NewOn(line *leap.Timeline, o Options) (*Collector, error) { return newOn(line, o) }

// SealAt is Seal with a reading of the clock that was taken some time ago.
func (c *Collector) SealAt(now leap.Reading) Boundary { return c.seal(now) }

// LimitedNames is how many names that other resources count have limiters of their own.
func LimitedNames(c *Collector) int {
	n := c.overflowLimiters
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
	n := c.overflowLimiters
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.byName[name]
	if m == nil {
		return nil
	}
	return m.limits()
}

// FoundBeforeItWasDropped reports whether a call of a name that another resource counts looks again if the limiter that
// it found is dropped before it has locked it.
func FoundBeforeItWasDropped(c *Collector, name string) bool {
	other := c.other.Load()
	list, _, err := other.limiter.Load().reserve(&options{name: name}, other.treeNodes()[0].listLeaves()[0])
	if err != nil {
		return false
	}
	c.overflowLimiters.swept = 0
	c.overflowLimiters.refresh()
	if err = lockAll(list); err == nil {
		unlockAll(list)
	}
	return err == errMoved
}

// DropOrigins removes the origins of a resource that have no leaves, as a sweep does.
func DropOrigins(r *Resource) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.dropOrigins()
}

// IsFree reports whether nobody holds the collector's lock.
func IsFree(c *Collector) bool {
	free := c.mu.TryLock()
	if free {
		c.mu.Unlock()
	}
	return free
}

// MemoryFor is the MaxMemory of options in which n resources have a leaf each.
func MemoryFor(o Options, n int) int64 {
	config, err := node.NewConfig(leap.NewTimeline(leap.Clock{}), o.Windows)
	if err != nil {
		panic(err)
	}
	o.MaxMemory, o.MaxResources = 0, DefaultMaxResources
	s := newReservations(config, &o)
	bytes := s.fixed + int64(n)*(s.resource+s.leaf) + s.entrance
	return bytes + bytes/(limiterShare-1) + 1
}
