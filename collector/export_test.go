package collector

import (
	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// NewOn is New on a given timeline. A test can control the monotonic clock and the wall clock of this timeline
// separately.
func NewOn(line *leap.Timeline, o Options) (*Collector, error) { return newOn(line, o) }

// SealAt is Seal for a reading of the clock that was made earlier.
func (c *Collector) SealAt(now leap.Reading) Boundary { return c.seal(now) }

// LimitedNames returns the number of overflowing names that have their own limiter.
func LimitedNames(c *Collector) int {
	n := c.overflowLimiters
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.byName)
}

// RulesOf returns the limits in the limiter of a resource.
func RulesOf(r *Resource) (list []Limit) {
	r = r.now()
	if m := r.limiter.Load(); m != nil {
		list = m.limits()
	}
	return list
}

// RulesOfName returns the limits in the limiter of an overflowing name.
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

// FoundBeforeItWasDropped finds the limiter of an overflowing name as a call does. It then drops the limiter, and locks
// it. It reports whether a call that has found the dropped limiter would look up its name again.
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

// IsFree reports whether the collector's lock is free.
func IsFree(c *Collector) bool {
	free := c.mu.TryLock()
	if free {
		c.mu.Unlock()
	}
	return free
}

// MemoryFor returns the MaxMemory that suffices for n resources with one leaf each, with the options o.
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
