package collector

import (
	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// NewOn is New on a given timeline. A test can control the monotonic clock and the wall clock of this timeline
// separately.
func NewOn(line *leap.Timeline, o Options) (*Collector, error) { return newOn(line, o) }

// SealAt is Seal for an earlier reading of the clock.
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

// FoundBeforeItWasDropped finds the limiter of an overflowing name, as a call does. It then drops the limiter, and
// tries to lock it. It reports whether the attempt fails with errMoved. A call would then look up its name again.
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

// DropOrigins removes all origins without leaves from a resource, as a sweep does.
func DropOrigins(r *Resource) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.dropOrigins()
}

// IsFree reports whether the field mu of the Collector is unlocked.
func IsFree(c *Collector) bool {
	free := c.mu.TryLock()
	if free {
		c.mu.Unlock()
	}
	return free
}

// MemoryFor returns a value for Options.MaxMemory. It suffices for n resources with one leaf each, if the other options
// are o.
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
