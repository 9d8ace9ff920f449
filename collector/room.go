package collector

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// idleResources are those that had been idle for longer than the history at the last sweep: while there is no room, a new
// name takes the place of the one that has been idle longest. An earned name takes that of another earned one, a given name
// that of a given one only where no earned one is idle.
type idleResources struct {
	mu                    sync.Mutex
	earned, given         []idleResource // the longest idle last
	earnedLeft, givenLeft atomic.Int64
}

// idleResource is a resource, and the second in which it was used last.
type idleResource struct {
	*Resource
	last int64
}

// any reports whether a name might find room. It takes no lock.
func (x *idleResources) any(given bool) bool {
	return x.earnedLeft.Load() > 0 || given && x.givenLeft.Load() > 0
}

// next takes the next one that may make room, nil if there is none.
func (x *idleResources) next(given bool) *Resource {
	x.mu.Lock()
	defer x.mu.Unlock()
	list, left := &x.earned, &x.earnedLeft
	if len(*list) == 0 {
		if list, left = &x.given, &x.givenLeft; !given || len(*list) == 0 {
			return nil
		}
	}
	last := len(*list) - 1
	r := (*list)[last].Resource
	*list = (*list)[:last]
	left.Store(int64(last))
	return r
}

// set replaces them by those of the list that were not used in the second since or later.
func (x *idleResources) set(list []idleResource, since int64) {
	list = filter(list, func(r idleResource) bool { return r.last < since })
	slices.SortStableFunc(list, func(a, b idleResource) int { return cmp.Compare(b.last, a.last) })
	earned := filter(list, func(r idleResource) bool { return !r.given.Load() })
	given := filter(list, func(r idleResource) bool { return r.given.Load() })
	x.mu.Lock()
	defer x.mu.Unlock()
	x.earned, x.given = earned, given
	x.earnedLeft.Store(int64(len(earned)))
	x.givenLeft.Store(int64(len(given)))
}

// idleSince is the second before which what makes room was used last: every reader can have had all of it.
func (c *Collector) idleSince(open int64) int64 {
	return open - int64((c.opts.Windows.History+2*time.Second)/time.Second)
}

// makeRoom retires the resource that has been idle longest, if it still may make room: it may have been used, asked for, or named
// by a limit since the sweep.
func (c *Collector) makeRoom(given bool) {
	r := c.idle.next(given)
	now := c.line.Now()
	since := c.idleSince(c.line.At(now).Index)
	if r != nil && r.mayMakeRoom(given) && r.lastUsed(now) < since {
		c.retire(r, now, since)
	}
}

// mayMakeRoom reports whether the resource can be retired for the sake of a new name, if it is idle.
func (r *Resource) mayMakeRoom(given bool) bool {
	return !r.dead.Load() && !r.stays && !r.shared.Load() && (given || !r.given.Load()) && !r.c.limits.Load().names[r.name]
}

// lastUsed is the last second in which the resource was used, the one in which it was made if it never was.
func (r *Resource) lastUsed(now leap.Reading) int64 {
	last := r.view.Since()
	for _, t := range r.treeNodes() {
		for _, l := range t.listLeaves() {
			last = max(last, l.LastUsed(now))
		}
	}
	return last
}
