package node

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// attempts is how often a reading is tried again because the bucket turned. If buckets are so short, and leaves so many,
// that all attempts fail, the leaves are read in successive buckets.
const attempts = 5

// together calls read for each leaf, with all its stripes' locks held, when all are in the same bucket: that of the
// reading now, or a later one if another reader was ahead. Then it starts again, and calls again first.
func (v *View) together(now leap.Reading, again func(), read func(*Statistic)) {
	leaves := v.list()
	for range attempts {
		again()
		first, same := true, true
		var bucket time.Duration
		latest := now
		for _, s := range leaves {
			s.lockAt(now)
			if !s.retired { // one that is has nothing in any window
				same = same && (first || s.at == bucket)
				first, bucket, latest = false, s.at, max(latest, s.end-1)
				read(s)
			}
			s.unlockStripes()
		}
		if same {
			return
		}
		now = latest
	}
}

// PassQPS is the passes of the second window at the reading now, per second: [View.Window] for the one number that is asked
// for most. Like all readings, it takes the stripes' locks of each leaf for the time of a short sum.
func (v *View) PassQPS(now leap.Reading) float64 {
	var sum int64
	if leaves := v.list(); len(leaves) == 1 { // as together does, without calls of functions
		s := leaves[0]
		s.lockAt(now)
		if !s.retired {
			sum = s.windowPasses()
		}
		s.unlockStripes()
	} else {
		v.together(now, func() { sum = 0 }, func(s *Statistic) { sum = saturate(sum, s.windowPasses()) })
	}
	return float64(sum) / v.shape.span.Seconds()
}

// Window returns the second window at the reading now: the bucket that is open and the ones before it, together
// Options.Interval long.
func (v *View) Window(now leap.Reading) (w Window) {
	var room [64]int64
	var done []int64
	v.together(now,
		func() { w, done = v.shape.window(room[:]) },
		func(s *Statistic) { s.addWindow(&w, done) })
	w.MaxComplete = slices.Max(done)
	return w
}

// Minute returns the minute window at the reading now: the second that is open and the ones before it, together
// Options.Minute long.
func (v *View) Minute(now leap.Reading) (w Window) {
	var room [64]int64
	var done []int64
	v.together(now,
		func() { w, done = v.shape.minuteWindow(room[:]) },
		func(s *Statistic) { s.addMinute(&w, done) })
	w.MaxComplete = slices.Max(done)
	return w
}

// InFlight is how many calls are in flight. Leaves are read one after the other.
func (v *View) InFlight() (sum int64) {
	for _, s := range v.list() {
		sum += s.inFlight()
	}
	return sum
}

// Waiting is how many calls have borrowed from buckets to come, at the reading now, and how many passes. To add the calls to
// [View.InFlight], read Waiting first: a call that passes in between is then in both, and not in neither.
func (v *View) Waiting(now leap.Reading) (calls, passes int64) {
	for _, s := range v.list() {
		c, p := s.waiting(now)
		calls, passes = calls+c, saturate(passes, p)
	}
	return calls, passes
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
	v.shape.line.At(now)
	open := v.shape.opened()
	leaves, removed := v.all()
	var snap Snapshot
	if h != nil {
		h.reset(v.shape.layout)
	}
	if by != nil {
		by.list = by.list[:0]
	}
	var spent callTime
	if removed != nil {
		snap.Total, spent = removed.total, removed.spent
		if h != nil {
			removed.rt.addTo(h.cells)
		}
		if by != nil {
			by.list.addAll(removed.codes)
		}
	}
	var room [128]int64
	perSec := int(v.shape.perSec)
	slides := counters(room[:], int(v.shape.horizon/time.Second)*perSec)
	first := open.Index - int64(v.shape.horizon/time.Second)
	for _, s := range leaves {
		s.mu.Lock()
		s.advance(max(now, open.Start))
		if len(leaves) == 1 { // there is nothing to add up
			snap.Peak = s.peakOf(first, open.Index)
		} else if s.rings != nil {
			s.rings.minute.each(first, open.Index, func(i int64, b []byte) bool {
				i = (i - first) * int64(perSec)
				addSlides(b, slides[i:i+int64(perSec)])
				return true
			})
		}
		s.addTotal(&snap, &spent, h, by)
		s.mu.Unlock()
	}
	snap.InFlightSeconds = v.tell(spent).Seconds()
	snap.Last, _ = v.Second(open.Index - 1)
	snap.Peak = max(snap.Peak, slices.Max(slides))
	if h != nil {
		h.measure(&snap.Total)
	}
	if by != nil {
		by.complete(snap.Total.Complete)
	}
	return snap
}

// tell is what a snapshot says that calls spent: what it is, or what one said before, if that was more. Calls that leave with
// a stamp from before a snapshot take back what it said of them.
func (v *View) tell(spent callTime) callTime {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.told.less(spent) {
		v.told = spent
	}
	return v.told
}

// all is the leaves and the totals of the removed ones, as of one moment.
func (v *View) all() ([]*Statistic, *removedLeaves) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var g *removedLeaves
	if v.removed != nil {
		g = &removedLeaves{total: v.removed.total, spent: v.removed.spent, codes: slices.Clone(v.removed.codes), last: v.removed.last, active: v.removed.active}
		v.removed.rt.each(g.rt.count)
	}
	return v.list(), g
}
