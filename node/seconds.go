package node

import (
	"math"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Second returns the record of the second with this index: the sum of the records of the leaves. It seals the second if
// necessary. It returns false in four cases:
//
//   - The timeline has not opened a later second.
//   - The second must not be exported, see [leap.Timeline.WallTime].
//   - The second is before the start of the view, or a leaf has dropped a record of this second or of a later second.
//     Leaves drop the records that are older than [Options].History.
//   - [View.Remove] has removed a leaf that may have counted in this second or later.
func (v *View) Second(index int64) (MetricNode, bool) {
	var scratch [1]MetricNode
	if list := v.AppendSeconds(scratch[:0], index, index+1); len(list) > 0 {
		return list[0], true
	}
	return MetricNode{}, false
}

// AppendSeconds appends the records of the seconds [from, to) to dst in ascending order, and returns the extended
// slice. It includes idle seconds, and leaves out seconds for which [View.Second] returns false. If more than an hour
// of the range is sealed, it appends only the last sealed hour. For several seconds, one call of AppendSeconds costs
// less than one call of Second for each second.
func (v *View) AppendSeconds(dst []MetricNode, from, to int64) []MetricNode {
	// Load the open second first, and then the leaves. If a leaf is added between these two steps, it begins in the
	// open second or later, so it has no events in the seconds to read.
	open := v.config.openSecond()
	leaves, removed := v.leavesAndRemoved()
	return v.appendSeconds(dst, leaves, max(from, v.since, removed.last+1), min(to, open.Index), open.Start)
}

// appendSeconds implements AppendSeconds for the given leaves. The seconds [from, to) must be sealed seconds of the
// view. The parameter open is the start of the open second.
func (v *View) appendSeconds(dst []MetricNode, leaves []*Statistic, from, to int64, open leap.Reading) []MetricNode {
	from = max(from, to-int64(leap.MaxSpan/time.Second)) // Options.History is at most MaxSpan, an hour
	if from >= to {
		return dst
	}
	perSec := v.config.perSec
	base, n := len(dst), int(to-from)
	dst = slices.Grow(dst, n)
	ms := dst[base : base+n]
	clear(ms)
	var scratchBounds [16]concurrencyBound
	bounds := scratchBounds[:]
	if n > len(bounds) {
		bounds = make([]concurrencyBound, n)
	}
	var scratch [32]int64
	slides := zeros(scratch[:], n*int(perSec))
	known := from
	for _, leaf := range leaves {
		known = max(known, leaf.addSeconds(from, open, ms, bounds, slides))
	}
	dst = dst[:base]
	for i := known; i < to; i++ {
		name, ok := v.config.line.WallTime(i)
		if !ok {
			continue
		}
		m, bound := &ms[i-from], &bounds[i-from]
		m.Start = name
		m.InFlightMax = min(m.InFlightMaxUpper, minConcurrency(
			bound.maxInFlight, bound.inFlightAtStart, m.InFlight, m.InFlightTime, bound.lateEntry))
		m.PassPeak = slices.Max(slides[(i-from)*perSec : (i-from+1)*perSec])
		// dst and ms share an array. The append overwrites m itself or an element before m. No code reads these
		// elements again.
		dst = append(dst, *m)
	}
	return dst
}

// addSeconds adds the records of the leaf s to ms, which has one element for each second; the index of the first second
// is from. addSeconds also adds the slides of the records to slides, which has perSec elements for each second, and the
// inputs of minConcurrency to bounds, which has one element for each second. The parameter open is the start of the
// open second.
//
// addSeconds returns the index of the earliest second since which s still has all its records. s may have dropped the
// records of earlier seconds.
//
// A second without a record has no events, and no call enters or exits in it. Its number of calls in flight is
// therefore the number at the start of the next second with a record. If no such second follows, it is the number at
// the start of the open second.
//
// Exporters call this function for every second, so it unpacks records in place. eachSecond would copy them.
func (s *Statistic) addSeconds(
	from int64, open leap.Reading, ms []MetricNode, bounds []concurrencyBound, slides []int64,
) (known int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	perSec := s.first.config.perSec
	next, to := max(from, s.since), from+int64(len(ms))
	idle := func(until, inFlight int64) {
		rec := idleSecond(inFlight)
		for ; next < until && inFlight > 0; next++ {
			ms[next-from].add(&rec, &bounds[next-from])
		}
	}
	s.history.seconds.each(from, to, func(i int64, b []byte) bool {
		var rec record
		rec.unpack(b, perSec, slides[(i-from)*perSec:(i-from+1)*perSec])
		idle(i, rec.inFlightAtStart)
		ms[i-from].add(&rec, &bounds[i-from])
		next = i + 1
		return true
	})
	if next < to {
		idle(to, s.inFlightAfter(to-1))
	}
	return s.history.seconds.dropped + 1
}

// eachSecond calls f for the records of the seconds [from, to), in ascending order. If slides is not nil, it has perSec
// elements for each second of [from, to), and eachSecond adds the slides of each record to the elements of its second.
// mu must be held.
//
// f gets the record by value, because Go would allocate a record on the heap if f got its address.
func (s *Statistic) eachSecond(from, to int64, slides []int64, f func(index int64, rec record)) {
	perSec := s.first.config.perSec
	s.history.seconds.each(from, to, func(i int64, b []byte) bool {
		var sums []int64
		if slides != nil {
			sums = slides[(i-from)*perSec : (i-from+1)*perSec]
		}
		var rec record
		rec.unpack(b, perSec, sums)
		f(i, rec)
		return true
	})
}

// inFlightAfter returns the number of calls in flight at the end of the second with this index, which must be sealed.
// No call enters or exits in a second without a record. The result is therefore the number at the start of the next
// second with a record. If no such second follows, it is the number at the start of the open second.
func (s *Statistic) inFlightAfter(index int64) int64 {
	inFlight := int64(s.inFlightAtStart)
	s.history.seconds.each(index+1, math.MaxInt64, func(_ int64, b []byte) bool {
		var rec record
		rec.unpack(b, s.first.config.perSec, nil)
		inFlight = rec.inFlightAtStart
		return false
	})
	return inFlight
}

// LastActive returns the index of the last active second before the second limit. The parameter limit is an index, too.
// A second is active if a call began, ended, was refused, or was in flight in it; see [MetricNode.Idle]. If the view
// has no active second before the second limit, LastActive returns the index of the second before the start of the
// view, or limit-1 if this is less.
//
// If the second limit is within the history, the result is exact, even if the record of the last active second was
// dropped. If the second limit is older than the history, LastActive may return limit-1 although this second was idle.
//
// LastActive locks each leaf once. If a leaf has records since the second limit, LastActive also scans records of this
// leaf. The scan starts where the previous lookup ended, or at the oldest record.
func (v *View) LastActive(limit int64) int64 {
	open := v.config.openSecond()
	leaves, removed := v.leavesAndRemoved()
	last := max(v.since-1, removed.active)
	for _, s := range leaves {
		s.mu.Lock()
		s.advance(open.Start)
		last = max(last, s.lastActive(min(limit, open.Index)))
		s.mu.Unlock()
	}
	return min(last, limit-1)
}

// lastActive returns the last second before the second limit in which s had an event or a call in flight. The parameter
// limit and the result are indexes of seconds. If there is no such second, lastActive returns math.MinInt64. If s has
// dropped all records before the second limit, lastActive returns the last active second among the dropped ones, even
// if this second is not before the second limit. mu must be held.
func (s *Statistic) lastActive(limit int64) int64 {
	limit = min(limit, s.second)
	index, record := s.history.seconds.before(limit)
	if s.inFlightAfter(limit-1) > 0 {
		return limit - 1
	}
	// No call was in flight at the end of the second limit-1. The seconds from the record to the second limit have no
	// records, so no call entered or exited in them, and they were idle.
	switch {
	case record == nil: // all records before limit were dropped, or s never had one
		return s.history.activeDropped
	case onlySlides(record, s.first.config.perSec): // the record has only slides: the second before it was active
		return index - 1
	}
	return index
}
