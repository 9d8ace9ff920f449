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
	// sweepEvery is the number of seconds between two sweeps for idle leaves.
	sweepEvery = 10
	// sealShare is the number of leaves that one call of Seal visits in a sweep. newShare is the number of leaves that
	// a call with a new name visits if the table of resources is full. The next Seal or the next call with a new name
	// continues the sweep.
	sealShare = 1000
	newShare  = 64
	// portion is the number of leaves that Collector.retire visits each time it locks mu.
	portion = 64
)

// sweeper is the state of the sweep in progress. A sweep visits all resources, and retires idle leaves and idle
// resources. Each call of Collector.sweep visits a part of the resources:
//
//	Seal, or a new name in a full table
//	  sweep    up to sealShare or newShare leaves; the next call continues
//	    retire idle leaves of a resource, then origins and tree nodes without leaves, then the resource if it is idle
//	  compact  at the end: remove retired resources from c.resources, and retired leaves from the shared views
//
// (The shared views have leaves of many resources: the views of the root, of the entrances, and of all inbound calls.)
type sweeper struct {
	mu   sync.Mutex     // held during each part of a sweep; locked only with TryLock, so no goroutine waits for it
	todo []*Resource    // resources that the sweep has not visited yet; nil between sweeps
	idle []idleResource // evictable resources found so far
	// Sum of the excess memory of the resources visited so far; see memoryOf.
	excess int64
}

// sweepIsDue reports whether a sweep is due or in progress. It does not read the clock. Instead it takes the second
// that was opened last as the current one, which is accurate enough for a sweep every ten seconds.
func (c *Collector) sweepIsDue() bool { return c.line.At(0).Index >= c.swept.Load()+sweepEvery }

// sweep starts a sweep if one is due, or continues the sweep in progress. It retires the leaves that have been idle for
// RetireAfter. At the end of the sweep, it replaces c.idle, the list of resources that a new name may evict; the list
// has resources only if the table is full. sweep stops after it has visited about n leaves. If another goroutine is in
// sweep, or no sweep is due, sweep does nothing. It does not read the clock.
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
	if s.todo == nil {
		s.todo = c.all()
	}
	for ; n > 0 && len(s.todo) > 0; s.todo = s.todo[1:] {
		r := s.todo[0]
		n--
		for _, t := range r.treeNodes() {
			n -= len(t.listLeaves())
		}
		if c.opts.RetireAfter >= 0 {
			c.retire(r, now, open-int64(c.opts.RetireAfter/time.Second))
		}
		_, excess := c.memoryOf(r)
		s.excess += excess
		if c.full("") && r.evictable(true) {
			s.idle = append(s.idle, idleResource{r, r.lastUsed(now), r.given.Load()})
		}
	}
	if len(s.todo) > 0 {
		return
	}
	c.setIdle(s.idle, c.idleSince(open))
	c.excess.Store(s.excess + max(c.overflowLimiters.memory()-c.sizes.overflow, 0))
	s.todo, s.idle, s.excess = nil, nil, 0
	c.compact()
	c.swept.Store(open)
}

// retire retires the idle leaves of a resource, and then the parts of the resource that have no leaves: see
// Resource.retire. A leaf is idle if, at the reading now, it has no call in flight, and its last activity was before
// the second idleFrom (an index). retire locks mu for one portion of the leaves at a time. It does not hold mu while
// the views add the counts of the retired leaves to their totals.
func (c *Collector) retire(r *Resource, now leap.Reading, idleFrom int64) {
	for _, t := range r.treeNodes() {
		for some := range slices.Chunk(t.listLeaves(), portion) {
			c.mu.Lock()
			views := t.retire(some, now, idleFrom)
			c.mu.Unlock()
			for v := range views {
				v.Remove(idleFrom)
			}
			c.mu.yield()
		}
	}
	c.mu.Lock()
	r.retire(idleFrom)
	many := c.gone.leaves > c.leafCount.Load()/8
	c.mu.Unlock()
	c.mu.yield()
	if many {
		c.compact()
	}
}

// retire retires the idle leaves in list, a portion of the node's leaves. Collector.retire explains now and idleFrom.
// retire returns the views of the resource that include retired leaves. The caller must remove the retired leaves from
// these views. The shared views also include retired leaves; compact removes these later. The collector's mu must be
// held.
func (t *TreeNode) retire(list []*leaf, now leap.Reading, idleFrom int64) map[*node.View]bool {
	views := map[*node.View]bool{}
	var gone int64
	for _, l := range list {
		if l.retired.Load() || !l.Retire(now, idleFrom) {
			continue
		}
		l.retired.Store(true)
		if gone++; l.spare {
			t.c.sparesInUse.Add(-1)
		}
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

// retire removes the origins and tree nodes without leaves. It then retires the resource itself, under three
// conditions. The resource has no leaf left. It was created before the second idleFrom (an index). Its limiter counts
// no call in flight, and no pass from the second idleFrom on. Some resources are never retired: resources in
// Options.Given, and resources that record calls of other names. The collector's mu must be held.
func (r *Resource) retire(idleFrom int64) {
	c := r.c
	r.dropOrigins()
	r.dropTreeNodes()
	if r.dead.Load() || r.permanent || r.fallback.Load() || !r.view.Empty() || r.view.Since() >= idleFrom ||
		r.limiterState.Load().inUse(idleFrom) {
		return
	}
	r.dead.Store(true)
	r.defaultOrigin.dead.Store(true)
	c.byName.Delete(r.name)
	c.registered.Add(-1)
	c.retired++
	c.gone.resources++
}

// all returns all resources that are not retired, in the order in which they were created. The caller must not change
// the slice.
func (c *Collector) all() []*Resource {
	c.mu.Lock()
	resources, gone := slices.Clip(c.resources), c.gone.resources > 0
	c.mu.Unlock()
	if gone {
		resources = filter(resources, (*Resource).alive)
	}
	return resources
}

// alive reports whether the resource has not been retired.
func (r *Resource) alive() bool { return !r.dead.Load() }

// compact removes retired resources from c.resources, and retired leaves from the shared views. The cost is linear in
// the length of c.resources and the number of leaves. compact does not hold mu while it copies the list of resources
// without the retired ones, so no call waits for the copying. It then locks mu, appends the resources that were
// registered during the copying, and replaces c.resources. If another goroutine is in compact, compact does nothing.
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
		// Sweeps and evictions retire a leaf only if it was idle for at least the history and two seconds. A retired
		// leaf has therefore recorded nothing in the second idleFrom and in later seconds.
		idleFrom := c.idleSince(c.line.At(0).Index)
		for _, e := range *c.entrances.Load() {
			e.view.Remove(idleFrom)
		}
		c.root.view.Remove(idleFrom)
		c.inbound.view.Remove(idleFrom)
	}
}

// filter returns a new slice with the elements of list for which keep returns true.
func filter[T any](list []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !keep(x) })
}

// idleResources lists the resources that had been idle for longer than the history at the last sweep. The resources
// with given names (from code) come first, then those with earned names (from requests); each group ends with its
// longest-idle resource. While the table is full, a new name evicts the last entry. A new earned name evicts only
// earned names. A new given name evicts a given name only if no earned name is idle.
type idleResources []idleResource

// idleResource is a resource with its state at the time when the sweep visited it.
type idleResource struct {
	*Resource
	last  int64 // index of the second of its last use
	given bool  // the name is given, not earned
}

// any reports whether a new name may evict one of the resources. The parameter given is true if the new name is given,
// and false if it is earned.
func (x idleResources) any(given bool) bool { return len(x) > 0 && (given || !x[len(x)-1].given) }

// setIdle replaces c.idle. The new list contains the resources from list whose last use was before the second idleFrom
// (an index), in the order that idleResources describes.
func (c *Collector) setIdle(list []idleResource, idleFrom int64) {
	list = filter(list, func(r idleResource) bool { return r.last < idleFrom })
	slices.SortStableFunc(list, func(a, b idleResource) int { return cmp.Compare(b.last, a.last) })
	earned := filter(list, func(r idleResource) bool { return !r.given })
	all := append(idleResources(filter(list, func(r idleResource) bool { return r.given })), earned...)
	c.idle.Store(&all)
}

// If a new name may evict the last resource of the list c.idle, takeIdle removes this resource from the list and
// returns it. Otherwise takeIdle returns nil. The parameter given is true if the new name is given, and false if it is
// earned.
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

// idleSince returns the index of a second: a resource may be evicted if its last use was before this second. The result
// is the index of the open second (the parameter open), minus the length of the history, minus two seconds. Every
// exporter has therefore had time to read the last seconds of the resource.
func (c *Collector) idleSince(open int64) int64 {
	return open - int64((c.shape.Options().History+2*time.Second)/time.Second)
}

// Retirement, eviction and calls may run concurrently. These conflicts are possible:
//
//	a call finds a leaf that is being retired       leaf.enter returns errMoved, and the call looks up the leaf again
//	a call finds a resource that is being retired   makeLeaf returns nil, and the call registers the name again
//	a handle is used after retirement               its field current is nil, so each call looks up the name
//	a view is read after retirement                 it reads the resource that has the name now, or else zeros
//	two new names may evict the same resource       takeIdle returns the resource for one of the two names only
//	the idle resource was used after the sweep      evict does not retire it; the next evict takes another resource

// evict retires the longest-idle resource that a new name may evict. The parameter given is true if the new name is
// given, and false if it is earned. If this resource was used after the last sweep, or if a limit has its name now,
// evict only removes it from c.idle.
func (c *Collector) evict(given bool) {
	r := c.takeIdle(given)
	// Check again that the resource is idle: the sweep that has listed it may be ten seconds old.
	now := c.line.Now()
	idleFrom := c.idleSince(c.line.At(now).Index)
	if r != nil && r.evictable(given) && r.lastUsed(now) < idleFrom {
		c.retire(r, now, idleFrom)
	}
}

// evictable reports whether a new name may evict the resource once it is idle. The parameter given is true if the new
// name is given, and false if it is earned.
func (r *Resource) evictable(given bool) bool {
	return !r.dead.Load() && !r.permanent && !r.fallback.Load() && (given || !r.given.Load()) &&
		!r.c.limits.Load().names[r.name]
}

// lastUsed returns the index of the last second in which a leaf of the resource had activity. If a call is in flight at
// the reading now, this is the open second. If the resource has no leaf, lastUsed returns the second in which the
// resource was created.
func (r *Resource) lastUsed(now leap.Reading) int64 {
	last := r.view.Since()
	for l := range r.leaves {
		last = max(last, l.LastUsed(now))
	}
	return last
}

// fairMutex is a mutex for long work that is done in portions. Between two portions, [fairMutex.yield] gives the
// processor to goroutines that wait for the mutex. Unlock of a sync.Mutex only makes a waiting goroutine runnable. If
// all processors are busy, this goroutine would run only after the long work has locked the mutex again for the next
// portion.
type fairMutex struct {
	sync.Mutex
	waiting atomic.Int32 // number of goroutines that wait in Lock
}

// Lock locks the mutex.
func (l *fairMutex) Lock() {
	if l.TryLock() {
		return
	}
	l.waiting.Add(1)
	l.Mutex.Lock()
	l.waiting.Add(-1)
}

// yield gives the processor to other goroutines if a goroutine waits for the mutex. The caller must not hold the mutex.
func (l *fairMutex) yield() {
	if l.waiting.Load() > 0 {
		runtime.Gosched()
	}
}
