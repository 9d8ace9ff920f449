package collector

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

const (
	// sweepEvery is how many seconds lie between two sweeps for idle leaves.
	sweepEvery = 10
	// sealShare is at how many leaves a Seal looks, and newShare at how many a new name that finds the table full. The next one goes on.
	sealShare = 1000
	newShare  = 64
	// portion is at how many leaves retire looks with mu held.
	portion = 64
)

// sweeper is the sweep that goes on.
type sweeper struct {
	mu   sync.Mutex // held by who sweeps; nobody waits for it
	left []*Resource
	idle []idleResource // found so far
}

// sweepIsDue reports whether it is time for a sweep, or one goes on. It does not read the clock: the second that was opened last
// is near enough.
func (c *Collector) sweepIsDue() bool { return c.line.At(0).Index >= c.swept.Load()+sweepEvery }

// sweep retires the leaves that have been idle for long enough, and finds the resources that may be evicted, if a sweep is
// due. It ends after some n leaves, and the next sweep goes on. While another goroutine sweeps, it does nothing. It does not read the
// clock either.
func (c *Collector) sweep(n int) {
	s := &c.sweeping
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if !c.sweepIsDue() {
		return
	}
	opened := c.line.At(0)
	now, open := opened.Start, opened.Index
	if s.left == nil {
		s.left = c.all()
	}
	for ; n > 0 && len(s.left) > 0; s.left = s.left[1:] {
		r := s.left[0]
		n--
		for _, t := range r.treeNodes() {
			n -= len(t.listLeaves())
		}
		if c.opts.RetireAfter >= 0 {
			c.retire(r, now, open-int64(c.opts.RetireAfter/time.Second))
		}
		if c.full("") && r.evictable(true) {
			s.idle = append(s.idle, idleResource{r, r.lastUsed(now), r.given.Load()})
		}
	}
	if len(s.left) > 0 {
		return
	}
	c.setIdle(s.idle, c.idleSince(open))
	s.left, s.idle = nil, nil
	c.compact()
	c.swept.Store(open)
}

// retire retires the leaves of a resource in which nothing was recorded in the second since or later, and what is empty then. It
// takes mu for a portion of the leaves at a time, and not while it adds up what they counted.
func (c *Collector) retire(r *Resource, now leap.Reading, since int64) {
	for _, t := range r.treeNodes() {
		for some := range slices.Chunk(t.listLeaves(), portion) {
			c.mu.Lock()
			views := t.retire(some, now, since)
			c.mu.Unlock()
			for v := range views {
				v.Remove(since)
			}
			c.mu.yield()
		}
	}
	c.mu.Lock()
	r.retire(since)
	many := c.gone.leaves > c.leafCount.Load()/8
	c.mu.Unlock()
	c.mu.yield()
	if many {
		c.compact()
	}
}

// retire retires those of some leaves of the node that are idle, and returns the views of the resource that have them. Holds the
// collector's mu.
func (t *TreeNode) retire(some []*leaf, now leap.Reading, since int64) map[*node.View]bool {
	views := map[*node.View]bool{}
	var gone int64
	for _, l := range some {
		if l.retired.Load() || !l.Retire(now, since) {
			continue
		}
		l.retired.Store(true)
		gone++
		l.resource.current.CompareAndSwap(l, nil)
		for _, v := range l.ownViews() {
			views[v] = true
		}
	}
	if gone > 0 {
		t.setLeaves(filter(t.listLeaves(), func(l *leaf) bool { return !l.retired.Load() }))
		t.c.leafCount.Add(-gone)
		t.c.gone.leaves += gone
	}
	return views
}

// retire retires what of the resource has no leaves, and in the end itself. Holds the collector's mu.
func (r *Resource) retire(since int64) {
	c := r.c
	r.dropOrigins()
	r.dropTreeNodes()
	if r.dead.Load() || r.stays || r.shared.Load() || !r.view.Empty() || r.view.Since() >= since || r.kept.Load().hasInFlight() {
		return
	}
	r.dead.Store(true)
	r.sole.dead.Store(true)
	c.byName.Delete(r.name)
	c.registered.Add(-1)
	c.retired++
	c.gone.resources++
}

// all is all resources. Nobody may change the slice.
func (c *Collector) all() []*Resource {
	c.mu.Lock()
	resources, gone := slices.Clip(c.resources), c.gone.resources > 0
	c.mu.Unlock()
	if gone {
		resources = filter(resources, (*Resource).alive)
	}
	return resources
}

// alive reports whether the resource is not retired.
func (r *Resource) alive() bool { return !r.dead.Load() }

// compact takes what was retired out of the list of resources, and out of the views of all, which costs in proportion to these. Nobody waits
// for that: what is kept is found first, and then replaces the list, with what has come meanwhile.
func (c *Collector) compact() {
	if !c.compactMu.TryLock() {
		return
	}
	defer c.compactMu.Unlock()
	c.mu.Lock()
	resources, gone := slices.Clip(c.resources), c.gone
	c.gone.leaves = 0
	c.mu.Unlock()
	if gone.resources > 0 {
		kept := filter(resources, (*Resource).alive)
		c.mu.Lock()
		c.gone.resources -= len(resources) - len(kept)
		c.resources = append(kept, c.resources[len(resources):]...)
		c.mu.Unlock()
	}
	if gone.leaves > 0 {
		// Whatever they were retired for, they were idle since then.
		since := c.idleSince(c.line.At(0).Index)
		for _, e := range *c.entrances.Load() {
			e.view.Remove(since)
		}
		c.root.view.Remove(since)
		c.inbound.view.Remove(since)
	}
}

// filter is a new slice of the elements to keep.
func filter[T any](list []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !keep(x) })
}

// idleResources are those that had been idle for longer than the history at the last sweep: the given ones and then the earned ones, and
// of each the longest idle last. While the table is full, a new name evicts the last one: an earned name another earned one, a given name a
// given one only where no earned one is idle.
type idleResources []idleResource

// idleResource is a resource as it was at the sweep.
type idleResource struct {
	*Resource
	last  int64 // the second in which it was used last
	given bool
}

// any reports whether a name might evict a resource.
func (x idleResources) any(given bool) bool { return len(x) > 0 && (given || !x[len(x)-1].given) }

// setIdle replaces them by those of the list that were not used in the second since or later.
func (c *Collector) setIdle(list []idleResource, since int64) {
	list = filter(list, func(r idleResource) bool { return r.last < since })
	slices.SortStableFunc(list, func(a, b idleResource) int { return cmp.Compare(b.last, a.last) })
	earned := filter(list, func(r idleResource) bool { return !r.given })
	all := append(idleResources(filter(list, func(r idleResource) bool { return r.given })), earned...)
	c.idle.Store(&all)
}

// takeIdle takes the next one that may be evicted, nil if there is none.
func (c *Collector) takeIdle(given bool) *Resource {
	for {
		all := c.idle.Load()
		if all == nil || !all.any(given) {
			return nil
		}
		rest := (*all)[:len(*all)-1]
		if c.idle.CompareAndSwap(all, &rest) {
			return (*all)[len(rest)].Resource
		}
	}
}

// idleSince is the second before which an evicted resource was last used: every reader can have had all of it.
func (c *Collector) idleSince(open int64) int64 {
	return open - int64((c.shape.Options().History+2*time.Second)/time.Second)
}

// evict retires the longest-idle resource, unless it has been used, looked up, or named by a limit since the sweep.
func (c *Collector) evict(given bool) {
	r := c.takeIdle(given)
	now := c.line.Now()
	since := c.idleSince(c.line.At(now).Index)
	if r != nil && r.evictable(given) && r.lastUsed(now) < since {
		c.retire(r, now, since)
	}
}

// evictable reports whether a new name may evict the resource, if it is idle.
func (r *Resource) evictable(given bool) bool {
	return !r.dead.Load() && !r.stays && !r.shared.Load() && (given || !r.given.Load()) && !r.c.limits.Load().names[r.name]
}

// lastUsed is the last second in which the resource was used, the one in which it was made if it never was.
func (r *Resource) lastUsed(now leap.Reading) int64 {
	last := r.view.Since()
	for l := range r.leaves {
		last = max(last, l.LastUsed(now))
	}
	return last
}

// fairMutex is a lock for long work that is done in portions. Between two of them, [fairMutex.yield] runs those who wait:
// a mutex alone would only make them runnable, and where all processors are busy, they would find it taken again each time that they
// get one.
type fairMutex struct {
	sync.Mutex
	waiting atomic.Int32
}

// Lock takes the lock.
func (l *fairMutex) Lock() {
	if l.TryLock() {
		return
	}
	l.waiting.Add(1)
	l.Mutex.Lock()
	l.waiting.Add(-1)
}

// yield runs those who wait for the lock, which the caller does not hold.
func (l *fairMutex) yield() {
	if l.waiting.Load() > 0 {
		runtime.Gosched()
	}
}
