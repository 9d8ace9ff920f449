package node

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// View reads several statistics, its leaves, as one: a resource over all its callers (Sentinel's ClusterNode), a
// resource in one context (DefaultNode), an entrance (EntranceNode), all inbound traffic, the whole process. All reading
// is done through views, also that of a single statistic. Nothing is recorded for a view: a call is written once, at its
// leaf, and a view costs its readers.
//
// A sealed second of a view is the sum of its leaves' sealed seconds, the sliding peak included; it is exact and never
// changes. Readings of open buckets take all leaves in the same bucket, one after the other. Only the most in flight
// is no sum: see [MetricNode].
//
// A leaf that is retired leaves the view; its totals stay. A reading costs what it costs for each leaf. A View must be
// made with [NewView] and not be copied. It is safe for concurrent use.
type View struct {
	shape       *Shape
	since, startName int64

	leaves atomic.Pointer[[]*Statistic] // another slice when leaves are removed; elements never change. Changes under mu

	mu      sync.Mutex
	removed *removedLeaves // noneRemoved while no leaf was
	reported   callTime       // the most that a snapshot said
}

// removedLeaves is the totals of the leaves that were removed. It is replaced, not changed.
type removedLeaves struct {
	total Counts
	inFlightTime callTime
	rt    cells[uint32]
	codes codes
	last  int64 // the last second in which any of them may have counted; the least number if none ever did
	// active is the last second in which any of them did, see Statistic.lastActive.
	active int64
}

// noneRemoved is the totals of no leaves. All views share it: those of removed leaves are replaced, never changed.
var noRemovedLeaves = &removedLeaves{last: math.MinInt64, active: math.MinInt64}

// and is the totals of r and of further leaves, which are retired and so do not change.
func (r *removedLeaves) plus(gone []*Statistic, since int64) *removedLeaves {
	sum := &removedLeaves{total: r.total, inFlightTime: r.inFlightTime, codes: slices.Clone(r.codes), last: r.last, active: r.active}
	r.rt.each(sum.rt.count)
	for _, s := range gone {
		if s.history == emptyHistory {
			continue
		}
		sum.last = max(sum.last, since-1)
		sum.total.add(&s.history.total)
		sum.inFlightTime.add(s.inFlightTimeNow())
		s.history.rt.each(sum.rt.count)
		s.addCodes(&sum.codes)
		s.mu.Lock() // a search notes where it ended
		sum.active = max(sum.active, s.lastActive(since))
		s.mu.Unlock()
	}
	return sum
}

// NewView makes a view without leaves that begins in the second of the reading now.
func NewView(shape *Shape, now leap.Reading) *View {
	second := shape.line.At(now)
	return &View{shape: shape, since: second.Index, startName: second.Name, removed: noRemovedLeaves}
}

// Add adds a leaf, which must not be known to any writer yet: it begins in the second that is open now, so that no
// second that was read without it changes.
func (v *View) Add(s *Statistic) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.Seal(v.shape.openSecond().Start)
	v.set(append(v.list(), s))
}

// Clone returns a view of the same leaves, with the same past.
func (v *View) Clone() *View {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &View{shape: v.shape, since: v.since, startName: v.startName, reported: v.reported, removed: v.removed}
	c.set(slices.Clone(v.list()))
	return c
}

// Remove removes the leaves that were retired, see [Statistic.Retire], and keeps their totals. Nothing may have been
// recorded for them in the second since or later. Seconds before it cannot be read any more. Its cost is in proportion to all leaves;
// readers, and leaves that are added, wait for none of it.
func (v *View) Remove(since int64) {
	for !v.remove(since) {
	}
}

// remove is Remove, or reports false because another goroutine removed leaves at the same time.
func (v *View) remove(since int64) bool {
	leaves, removed := v.leavesAndRemoved()
	var left, gone []*Statistic
	for _, s := range leaves {
		s.mu.Lock()
		if s.retired() {
			gone = append(gone, s)
		} else {
			left = append(left, s)
		}
		s.mu.Unlock()
	}
	if len(gone) == 0 {
		return true
	}
	sum := removed.plus(gone, since)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.removed != removed {
		return false
	}
	v.removed = sum
	v.set(append(left, v.list()[len(leaves):]...))
	return true
}

// Used reports whether the view has a leaf, or had one that counted something. A nil View has not.
func (v *View) Used() bool {
	if v == nil {
		return false
	}
	leaves, removed := v.leavesAndRemoved()
	return len(leaves) > 0 || removed.last > math.MinInt64
}

// Empty reports whether the view has no leaves.
func (v *View) Empty() bool { return len(v.list()) == 0 }

func (v *View) list() []*Statistic {
	if l := v.leaves.Load(); l != nil {
		return *l
	}
	return nil
}

// set sets the leaves. Holds mu.
func (v *View) set(leaves []*Statistic) { v.leaves.Store(&leaves) }

// opened is the second that was opened last.
func (s *Shape) openSecond() leap.Second { return s.line.At(math.MinInt64) }

// Since is the index of the second in which the view began.
func (v *View) Since() int64 { return v.since }

// Began is the wall-clock second in which the view began, in UTC.
func (v *View) Began() time.Time { return time.Unix(v.startName, 0).UTC() }

// Snapshot is a view at one moment. It is a plain value, and comparable.
type Snapshot struct {
	// Total is everything since the view began, up to the moment.
	Total Counts
	// InFlight is how many calls were in flight at the moment.
	InFlight int64
	// InFlightSeconds is the time that all calls together were in flight since the view began, up to the moment, in seconds.
	// Its growth, divided by the time in which it grew, is how many were in flight on average. It never falls.
	InFlightSeconds float64
	// InFlightElapsed is the response time so far of all calls together that were in flight at the moment, in seconds: divided by
	// InFlight it is their average age. It is exact but for 4.1 µs a call.
	InFlightElapsed float64
	// Last is the last complete second, which no open bucket blurs.
	Last MetricNode
	// Peak is the highest sliding second of the minute before the present second: of its PassPeaks.
	Peak int64
}

// addTotal adds all counts up to now to the snapshot, to the cells of h and to the codes where these are not nil, and what was spent up
// to now to spent. Holds mu.
func (s *Statistic) addTotal(snap *Snapshot, spent *callTime, h *Histogram, by *Codes) {
	s.lockStripes()
	defer s.unlockStripes()
	now := s.inFlightTimeNow()
	spent.add(now)
	open, inFlight := s.openCounts()
	if inFlight > 0 {
		snap.InFlightElapsed += s.inFlightAge(now).Seconds()
	}
	open.add(&s.history.total)
	snap.Total.add(&open)
	snap.InFlight += inFlight
	if h != nil {
		for st := range s.stripes {
			if st.completions != nil {
				st.completions.addTo(h.cells, 0)
			}
		}
		s.history.rt.addTo(h.cells, 0)
	}
	if by != nil {
		s.addCodes(&by.list)
	}
}

// addCodes adds the codes of all time. Holds all stripes' locks.
func (s *Statistic) addCodes(to *codes) {
	for st := range s.stripes {
		if st.completions != nil {
			for _, x := range st.completions.byCode {
				to.add(x.code, x.n)
			}
		}
	}
}

// Snapshot reads the view at the reading now, each leaf as of its own moment; the totals include removed leaves. If h is
// not nil it is set to the histogram of all response times since the view began, as of the same moments: its count is
// Total.Complete.
func (v *View) Snapshot(now leap.Reading, h *Histogram) Snapshot {
	return v.SnapshotByCode(now, h, nil)
}

// SnapshotByCode is Snapshot, and sets by, if it is not nil, to the completions by code as of the same moments: together they
// are Total.Complete.
func (v *View) SnapshotByCode(now leap.Reading, h *Histogram, by *Codes) Snapshot {
	open := v.shape.line.At(now)
	leaves, removed := v.leavesAndRemoved()
	snap, spent := Snapshot{Total: removed.total}, removed.inFlightTime
	if h != nil {
		h.reset(v.shape.layout)
		removed.rt.addTo(h.cells, 0)
	}
	if by != nil {
		by.list = append(by.list[:0], removed.codes...)
	}
	var scratch [128]int64
	perSec := int(v.shape.perSec)
	slides := zeros(scratch[:], int(v.shape.opts.Minute/time.Second)*perSec)
	first := open.Index - int64(v.shape.opts.Minute/time.Second)
	for _, s := range leaves {
		s.mu.Lock()
		s.advance(max(now, open.Start))
		if len(leaves) == 1 { // there is nothing to add up
			snap.Peak = s.minutePeak(first, open.Index, slides)
		} else {
			s.eachSecond(first, open.Index, slides, func(int64, record) {})
		}
		s.addTotal(&snap, &spent, h, by)
		s.mu.Unlock()
	}
	snap.InFlightSeconds = v.monotonic(spent).Seconds()
	snap.Last, _ = v.Second(open.Index - 1)
	snap.Peak = max(snap.Peak, slices.Max(slides))
	if h != nil {
		h.addTotals(&snap.Total)
	}
	if by != nil {
		by.complete(snap.Total.Complete)
	}
	return snap
}

// neverFalling is what a snapshot says that calls spent: what it is, or what one said before, if that was more. Calls that leave with
// a stamp from before a snapshot take back what it said of them.
func (v *View) monotonic(spent callTime) callTime {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reported.less(spent) {
		v.reported = spent
	}
	return v.reported
}

// all is the leaves and the totals of the removed ones, as of one moment.
func (v *View) leavesAndRemoved() ([]*Statistic, *removedLeaves) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.list(), v.removed
}
