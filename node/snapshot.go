package node

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Snapshot holds the values of a view at one reading. [View.Snapshot] returns it. Values can be copied and compared.
type Snapshot struct {
	// Total holds the counts of all events since the view began.
	Total Counts
	// InFlight is the number of calls in flight.
	InFlight int64
	// InFlightSeconds holds the call-seconds since the view began: the time in flight, summed over all calls. It never
	// falls. Between two snapshots, its growth divided by the elapsed time is the average number
	// of calls in flight.
	InFlightSeconds float64
	// InFlightElapsed is the sum of the ages of the calls in flight, in seconds. Divided by InFlight, it is the average
	// age of these calls. It is exact to 4.1 µs per call.
	InFlightElapsed float64
	// Last is the record of the second before the current second. This second is complete, but a [Window] ends with a
	// bucket that is not. If [View.Second] returns false for this second, Last is the zero MetricNode.
	Last MetricNode
	// Peak is the highest PassPeak of the 60 seconds before the current second.
	Peak int64
}

// Snapshot returns the values of the view at the reading now. It turns each leaf to this reading and reads the leaf
// under its locks, one leaf after the other. The totals include removed leaves. If h is not nil, Snapshot sets h to the
// histogram of all response times since the view began. Histogram and totals are read together: the count of h is
// Total.Complete.
func (v *View) Snapshot(now leap.Reading, h *Histogram) Snapshot {
	return v.SnapshotByCode(now, h, nil)
}

// SnapshotByCode is like [View.Snapshot]. If byCode is not nil, SnapshotByCode also sets it to the completions by code
// since the view began. Codes and totals are read together: the sum over all codes is Total.Complete.
func (v *View) SnapshotByCode(now leap.Reading, h *Histogram, byCode *Codes) Snapshot {
	open := v.config.line.At(now)
	leaves, removed := v.leavesAndRemoved()
	snap, spent := Snapshot{Total: removed.total}, removed.inFlightTime
	if h != nil {
		h.reset(v.config.layout)
		removed.rt.addTo(h.cells, 0)
	}
	if byCode != nil {
		byCode.reset()
		byCode.list = append(byCode.list, removed.codes...)
		byCode.addTimes(v.config.layout, removed.times)
	}
	var scratch [128]int64
	perSec := int(v.config.perSec)
	slides := zeros(scratch[:], int(Minute/time.Second)*perSec)
	first := open.Index - int64(Minute/time.Second)
	for _, s := range leaves {
		s.mu.Lock()
		s.advance(max(now, open.Start))
		if len(leaves) == 1 { // the peak of the view is the peak of the leaf, which the leaf caches
			snap.Peak = s.minutePeak(first, open.Index, slides)
		} else {
			s.eachSecond(first, open.Index, slides, func(int64, record) {})
		}
		s.addTotal(&snap, &spent, h, byCode)
		s.mu.Unlock()
	}
	snap.InFlightSeconds = v.monotonic(spent).Seconds()
	snap.Last, _ = v.Second(open.Index - 1)
	snap.Peak = max(snap.Peak, slices.Max(slides))
	if h != nil {
		h.addTotals(&snap.Total)
	}
	if byCode != nil {
		byCode.complete(snap.Total.Complete)
	}
	return snap
}

// addTotal adds the current totals of s to snap, and the call-seconds of s to spent. The open bucket is included. If h
// is not nil, addTotal adds the response times to h. If byCode is not nil, addTotal adds the completions by code to it.
// mu must be held.
func (s *Statistic) addTotal(snap *Snapshot, spent *callTime, h *Histogram, byCode *Codes) {
	s.lockStripes()
	defer s.unlockStripes()
	callSeconds := s.inFlightTimeNow()
	spent.add(callSeconds)
	open, inFlight := s.openCounts()
	if inFlight > 0 {
		snap.InFlightElapsed += s.inFlightAge(callSeconds).Seconds()
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
	if byCode != nil {
		s.addCodes(&byCode.list)
		if s.first.split {
			byCode.inFlight += inFlight
			for t := range s.timesByCode {
				byCode.addTimes(s.first.config.layout, t)
			}
		}
	}
}

// monotonic returns the call-seconds that a snapshot reports, and stores them for later snapshots. The result is spent,
// or the highest value that an earlier snapshot has reported if that value is higher. The call-seconds of a view can
// fall after a snapshot: a call may exit with a stamp from before this snapshot. The exit then subtracts time that the
// snapshot has already reported.
func (v *View) monotonic(spent callTime) callTime {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reported.less(spent) {
		v.reported = spent
	}
	return v.reported
}
