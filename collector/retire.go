package collector

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// sweepEvery is how many seconds lie between two sweeps for idle leaves.
const sweepEvery = 10

// sweepIsDue reports whether it is time for a sweep. It does not read the clock: the second that was opened last is near
// enough.
func (c *Collector) sweepIsDue() bool { return c.line.At(0).Index >= c.swept.Load()+sweepEvery }

// sweep retires the leaves that have been idle for long enough, and finds the resources that may make room, if a sweep is
// due. Holds mu.
func (c *Collector) sweep() {
	if !c.sweepIsDue() {
		return
	}
	now := c.line.Now()
	open := c.line.At(now).Index
	c.swept.Store(open)
	if c.opts.RetireAfter >= 0 {
		c.retire(now, open-int64(c.opts.RetireAfter/time.Second), func(*Resource) bool { return true })
	}
	c.findIdle(now, open)
}

// retire retires the leaves of some resources in which nothing was recorded in the second since or later, and what is empty
// then. It costs in proportion to all leaves and resources. Holds mu.
func (c *Collector) retire(now leap.Reading, since int64, of func(*Resource) bool) {
	touched := map[*node.View]bool{}
	c.leaves = filter(c.leaves, func(l *leaf) bool {
		if !of(l.resource) || !l.Retire(now, since) {
			return true
		}
		for _, v := range l.views() {
			touched[v] = true
		}
		c.leafCount.Add(-1)
		l.treeNode.dropLeaf(l)
		l.resource.home.CompareAndSwap(l, nil)
		return false
	})
	for v := range touched {
		v.Remove(since)
	}
	c.watched = nil
	for _, l := range c.leaves {
		if l.watched != nil {
			c.watched = append(c.watched, l.watched)
		}
	}
	c.shape.Watch(c.watched, len(touched) > 0)
	c.resources = filter(c.resources, func(r *Resource) bool {
		if !of(r) {
			return true
		}
		if all := r.origins.Load(); all != nil {
			for name, o := range *all {
				if o.view.Empty() {
					r.dropOrigin(name)
				}
			}
		}
		for _, p := range r.treeNodes() {
			if p.view.Empty() {
				r.dropTreeNode(p)
				p.entrance.members--
				c.edges.Add(-p.unlink())
			}
		}
		if r.stays || !r.view.Empty() || r.view.Since() >= since || r.kept.busy() {
			return true
		}
		r.dead.Store(true)
		r.sole.dead.Store(true)
		c.byName.Delete(r.name)
		c.count.Add(-1)
		c.retired++
		return false
	})
	all := filter(*c.entrances.Load(), func(e *TreeNode) bool {
		if e.members > 0 {
			return true
		}
		e.unlink()
		return false
	})
	c.entrances.Store(&all)
}

// filter is a new slice of the elements to keep.
func filter[T any](list []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !keep(x) })
}
