package collector

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// idleResources are those that have been idle for longer than the history, as of the last sweep: while there is no room, a new
// name takes the place of the one that has been idle longest. An earned name takes that of another earned one, a given name
// that of a given one only where no earned one is idle.
type idleResources struct {
	earned, given         []*Resource // the longest idle last; guarded by the collector's mu
	earnedLeft, givenLeft atomic.Int64
	gone                  int // since the last sweep; guarded by the collector's mu
}

// any reports whether a name might find room. It takes no lock.
func (x *idleResources) any(given bool) bool {
	return x.earnedLeft.Load() > 0 || given && x.givenLeft.Load() > 0
}

// next takes the next one that may make room, nil if there is none. Holds mu.
func (x *idleResources) next(given bool) (r *Resource) {
	list, left := &x.earned, &x.earnedLeft
	if len(*list) == 0 {
		if list, left = &x.given, &x.givenLeft; !given || len(*list) == 0 {
			return nil
		}
	}
	last := len(*list) - 1
	r, *list = (*list)[last], (*list)[:last]
	left.Store(int64(last))
	return r
}

// idleSince is the second before which what makes room was used last: every reader can have had all of it.
func (c *Collector) idleSince(open int64) int64 {
	return open - int64((c.opts.Windows.History+2*time.Second)/time.Second)
}

// findIdle finds the resources that may make room, if there is none. Holds mu.
func (c *Collector) findIdle(now leap.Reading, open int64) {
	x := &c.idle
	x.earned, x.given, x.gone = nil, nil, 0
	if c.full("") {
		since := c.idleSince(open)
		last := map[*Resource]int64{}
		for _, r := range c.resources {
			if last[r] = r.lastUsed(now); last[r] >= since || r.stays {
				continue
			}
			if r.given.Load() {
				x.given = append(x.given, r)
			} else {
				x.earned = append(x.earned, r)
			}
		}
		for _, list := range [][]*Resource{x.earned, x.given} {
			slices.SortStableFunc(list, func(a, b *Resource) int { return cmp.Compare(last[b], last[a]) })
		}
	}
	x.earnedLeft.Store(int64(len(x.earned)))
	x.givenLeft.Store(int64(len(x.given)))
}

// makeRoom retires the resource that has been idle longest, and reports whether there was one. As each time costs a look at all
// resources, the next ones retire together, as many as went since the last sweep: so it stays linear however many names come.
// Holds mu.
func (c *Collector) makeRoom(given bool) bool {
	x := &c.idle
	now := c.line.Now()
	since := c.idleSince(c.line.At(now).Index)
	going := map[*Resource]bool{}
	for len(going) < max(x.gone, 1) {
		r := x.next(given)
		if r == nil {
			break
		}
		// It may have been used, asked for, or named by a limit since.
		if !r.dead.Load() && !r.stays && (given || !r.given.Load()) && !c.limits.Load().names[r.name] && r.lastUsed(now) < since && !r.kept.busy() {
			going[r] = true
		}
	}
	if len(going) == 0 {
		return false
	}
	x.gone += len(going)
	c.retire(now, since, func(r *Resource) bool { return going[r] })
	return true
}

// lastUsed is the last second in which the resource was used, the one in which it was made if it never was. Holds the collector's
// mu.
func (r *Resource) lastUsed(now leap.Reading) int64 {
	last := r.view.Since()
	for _, t := range r.treeNodes() {
		if all := t.leaves.Load(); all != nil {
			for _, l := range all.list {
				last = max(last, l.LastUsed(now))
			}
		}
	}
	return last
}
