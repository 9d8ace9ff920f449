package node

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// View reads one or several statistics, its leaves, as one. Examples are a resource over all its callers (Sentinel's
// ClusterNode), a resource in one context (DefaultNode), an entrance (EntranceNode), all inbound calls, or the whole
// process. A single statistic is read through a view, too. Views record nothing: a call is recorded once, at its leaf,
// and only readers pay for a view.
//
//	              leaf 1   leaf 2   leaf 3
//	second 41        5        0        7     -> view: 12     sealed, exact
//	second 42        3        1        0     -> view:  4     sealed, exact
//	open bucket      2        0        1     -> view:  3     all leaves in the same bucket
//
// A sealed second of a view is final, and is the exact sum of the sealed seconds of its leaves. The peak is exact, too,
// because the slides of the leaves are summed before the highest sum is chosen. Only the maximum in flight may be a
// lower bound; see [MetricNode].InFlightMax.
//
// When a retired leaf is removed from the view, the view keeps the totals of the leaf. The cost of a reading is linear
// in the number of leaves. Create a View with [NewView], and do not copy it. All methods are safe for concurrent use.
type View struct {
	config           *Config
	since, startName int64 // index and name of the first second

	leaves atomic.Pointer[[]*Statistic] // replaced under mu; a slice that a reader has loaded never changes

	mu       sync.Mutex
	removed  *removedLeaves // noRemovedLeaves until a leaf is removed
	reported callTime       // highest call-seconds of all snapshots so far
}

// removedLeaves holds the totals of the leaves that were removed from a view. A removedLeaves never changes. When more
// leaves are removed, another removedLeaves replaces it.
type removedLeaves struct {
	total        Counts
	inFlightTime callTime
	rt           cells[uint32]
	codes        codes
	times        *codeTimes
	last         int64 // last second in which a removed leaf may have counted; math.MinInt64 if none has counted
	active       int64 // last second in which a removed leaf was active, see Statistic.lastActive
}

// noRemovedLeaves holds no totals. All views share it: it is the value of View.removed until the view removes a leaf.
var noRemovedLeaves = &removedLeaves{last: math.MinInt64, active: math.MinInt64}

// plus returns the sum of the totals in r and the totals of the given leaves. The leaves must be retired, so their
// counts no longer change. The last activity of the leaves must be before the second idleFrom.
func (r *removedLeaves) plus(retired []*Statistic, idleFrom int64) *removedLeaves {
	sum := &removedLeaves{
		total: r.total, inFlightTime: r.inFlightTime, codes: slices.Clone(r.codes), last: r.last, active: r.active,
	}
	r.rt.each(sum.rt.count)
	addTimes(&sum.times, r.times)
	for _, s := range retired {
		if s.history == emptyHistory {
			continue
		}
		sum.last = max(sum.last, idleFrom-1)
		sum.total.add(&s.history.total)
		sum.inFlightTime.add(s.inFlightTimeNow())
		s.history.rt.each(sum.rt.count)
		s.addCodes(&sum.codes)
		for t := range s.timesByCode {
			addTimes(&sum.times, t)
		}
		s.mu.Lock() // lastActive looks up records, which needs mu
		sum.active = max(sum.active, s.lastActive(idleFrom))
		s.mu.Unlock()
	}
	return sum
}

// NewView returns a view without leaves that begins in the second of the reading now.
func NewView(config *Config, now leap.Reading) *View {
	second := config.line.At(now)
	return &View{config: config, since: second.Index, startName: second.Name, removed: noRemovedLeaves}
}

// Add adds a leaf that no writer uses yet. Add turns the leaf to the open second, so all events of the leaf count in
// the open second or later. Sealed seconds of the view, which may have been read before, therefore do not change.
func (v *View) Add(s *Statistic) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.Seal(v.config.openSecond().Start)
	v.set(append(v.list(), s))
}

// Clone returns a view with the same leaves, the same beginning and the same totals.
func (v *View) Clone() *View {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &View{config: v.config, since: v.since, startName: v.startName, reported: v.reported, removed: v.removed}
	c.set(slices.Clone(v.list()))
	return c
}

// Remove removes all retired leaves (see [Statistic.Retire]) from the view and keeps their totals. The parameter
// idleFrom is the index of a second. The last activity of the retired leaves must be before the second idleFrom. If one
// of these leaves has counted something, the records of the view for seconds before idleFrom can no longer be read.
// Remove scans all leaves. Goroutines that read the view or add leaves do not wait for this scan.
func (v *View) Remove(idleFrom int64) {
	for !v.remove(idleFrom) {
	}
}

// remove makes one attempt to remove all retired leaves. It fails and returns false if another goroutine removes leaves
// at the same time.
func (v *View) remove(idleFrom int64) bool {
	leaves, removed := v.leavesAndRemoved()
	var kept, retired []*Statistic
	for _, s := range leaves {
		s.mu.Lock()
		if s.retired() {
			retired = append(retired, s)
		} else {
			kept = append(kept, s)
		}
		s.mu.Unlock()
	}
	if len(retired) == 0 {
		return true
	}
	sum := removed.plus(retired, idleFrom)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.removed != removed {
		return false
	}
	v.removed = sum
	v.set(append(kept, v.list()[len(leaves):]...))
	return true
}

// Used reports whether the view has a leaf, or had a leaf that counted something. For a nil View, Used returns false.
func (v *View) Used() bool {
	if v == nil {
		return false
	}
	leaves, removed := v.leavesAndRemoved()
	return len(leaves) > 0 || removed.last > math.MinInt64
}

// Empty reports whether the view has no leaves.
func (v *View) Empty() bool { return len(v.list()) == 0 }

// list returns the leaves.
func (v *View) list() []*Statistic {
	if l := v.leaves.Load(); l != nil {
		return *l
	}
	return nil
}

// set replaces the leaves. v.mu must be held.
func (v *View) set(leaves []*Statistic) { v.leaves.Store(&leaves) }

// leavesAndRemoved returns the leaves and the totals of the removed leaves. It reads both at the same instant.
func (v *View) leavesAndRemoved() ([]*Statistic, *removedLeaves) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.list(), v.removed
}

// Since returns the index of the first second of the view.
func (v *View) Since() int64 { return v.since }

// Began returns the wall-clock time of the first second of the view, in UTC.
func (v *View) Began() time.Time { return time.Unix(v.startName, 0).UTC() }
