package node

import (
	"math"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Second returns the record of the second with this index on the line: the sum of the leaves' records, which need not have
// been sealed before. It reports false for a second from before the view began, one that the timeline has not passed, one
// that is older than the history or from before a leaf was removed, and one that must not be handed out (see
// [leap.Timeline.Name]).
func (v *View) Second(index int64) (MetricNode, bool) {
	var room [1]MetricNode
	if list := v.AppendSeconds(room[:0], index, index+1); len(list) > 0 {
		return list[0], true
	}
	return MetricNode{}, false
}

// AppendSeconds appends the records of the seconds with indexes from from to before to, ascending, idle ones included, and
// returns the extended slice. Seconds for which [View.Second] reports false are left out. It costs less than to ask for
// each.
func (v *View) AppendSeconds(dst []MetricNode, from, to int64) []MetricNode {
	// The order matters: a leaf that is added after the list was taken begins in the second that is open now, or later.
	open := v.shape.openSecond()
	leaves, removed := v.leavesAndRemoved()
	return v.appendSeconds(dst, leaves, max(from, v.since, removed.last+1), min(to, open.Index), open.Start)
}

// Seal moves the statistic to the reading now, so that every second before now's has its record. It costs a
// lock and a comparison where there is nothing to do.
func (s *Statistic) Seal(now leap.Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
}

// appendSeconds appends the sums of the records of several statistics. The second that starts at the reading open is
// open by now.
func (v *View) appendSeconds(dst []MetricNode, leaves []*Statistic, from, to int64, open leap.Reading) []MetricNode {
	from = max(from, to-int64(leap.MaxSpan/time.Second)) // nothing is kept for longer
	if from >= to {
		return dst
	}
	perSec := v.shape.perSec
	base, n := len(dst), int(to-from)
	dst = slices.Grow(dst, n)
	ms := dst[base : base+n]
	clear(ms)
	var roomTimes [16]concurrencyBound
	ts := roomTimes[:]
	if n > len(ts) {
		ts = make([]concurrencyBound, n)
	}
	var scratch [32]int64
	slides := zeros(scratch[:], n*int(perSec))
	known := from
	for _, leaf := range leaves {
		known = max(known, leaf.addSeconds(from, open, ms, ts, slides))
	}
	dst = dst[:base]
	for i := known; i < to; i++ {
		name, ok := v.shape.line.Name(i)
		if !ok {
			continue
		}
		m, t := &ms[i-from], &ts[i-from]
		m.Start = name
		m.InFlightMax = minConcurrency(t.maxInFlight, t.inFlightAtStart, m.InFlight, m.InFlightTime, t.lateEntry)
		m.PassPeak = slices.Max(slides[(i-from)*perSec : (i-from+1)*perSec])
		dst = append(dst, *m) // which is where it is, or behind that
	}
	return dst
}

// addSeconds adds the records of the seconds from from on, and their slides. It returns the first second from which on
// all are known.
//
// Seconds without a record lie between those that have one. Nothing entered or left in them, so what was in flight is what the
// next record begins with, or the open second if there is none. Whoever takes every second out comes through here, so records
// are unpacked in place, and not copied as eachSecond does.
func (s *Statistic) addSeconds(from int64, open leap.Reading, ms []MetricNode, ts []concurrencyBound, slides []int64) (known int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	perSec := s.first.shape.perSec
	next, to := max(from, s.since), from+int64(len(ms))
	idle := func(until, inFlight int64) {
		rec := idleSecond(inFlight)
		for ; next < until && inFlight > 0; next++ {
			ms[next-from].add(&rec, &ts[next-from])
		}
	}
	s.history.seconds.each(from, to, func(i int64, b []byte) bool {
		var rec record
		rec.unpack(b, perSec, slides[(i-from)*perSec:(i-from+1)*perSec])
		idle(i, rec.inFlightAtStart)
		ms[i-from].add(&rec, &ts[i-from])
		next = i + 1
		return true
	})
	if next < to {
		idle(to, s.inFlightAfter(to-1))
	}
	return s.history.seconds.dropped + 1
}

// eachSecond calls f for the records of the seconds from from to before to, ascending. If slides is not nil it has those of each
// second, the first of which is from, and gets those of the records added. Holds mu.
//
// A record is handed over by value: one that f got the address of would have to be allocated.
func (s *Statistic) eachSecond(from, to int64, slides []int64, f func(index int64, rec record)) {
	perSec := s.first.shape.perSec
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

// inFlightAfter is what the first recorded second after a second began with.
func (s *Statistic) inFlightAfter(index int64) int64 {
	inFlight := int64(s.inFlightAtStart)
	s.history.seconds.each(index+1, math.MaxInt64, func(_ int64, b []byte) bool {
		var rec record
		rec.unpack(b, s.first.shape.perSec, nil)
		inFlight = rec.inFlightAtStart
		return false
	})
	return inFlight
}

// LastActive returns the last second before the one with this index that was not idle, see [MetricNode.Idle]: a call began,
// ended, was refused, or was in flight. If there is none it returns the second before the view began. It is exact for every
// second that can be read, also if the last active one cannot be read any more; before an older second all are taken to be
// active. For a view that has been idle since it costs a lock of each leaf; otherwise records are looked at, the newest first.
func (v *View) LastActive(before int64) (index int64) {
	open := v.shape.openSecond()
	leaves, removed := v.leavesAndRemoved()
	last := max(v.since-1, removed.active)
	for _, s := range leaves {
		s.mu.Lock()
		s.advance(open.Start)
		last = max(last, s.lastActive(min(before, open.Index)))
		s.mu.Unlock()
	}
	return min(last, before-1)
}

// lastActive is the last second before one in which something happened or was in flight, the least number if there is none. Holds mu.
func (s *Statistic) lastActive(before int64) int64 {
	before = min(before, s.second)
	index, record := s.history.seconds.before(before)
	if s.inFlightAfter(before-1) > 0 {
		return before - 1
	}
	// Nothing was in flight since the last record.
	switch {
	case record == nil:
		return s.history.activeDropped
	case onlySlides(record, s.first.shape.perSec):
		return index - 1
	}
	return index
}
