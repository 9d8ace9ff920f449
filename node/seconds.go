package node

import (
	"math"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Seal moves the statistic to the reading now, so that every second before now's has its record. It costs a
// lock and a comparison where there is nothing to do.
func (s *Statistic) Seal(now leap.Reading) { s.turn(now) }

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
	var roomTimes [64]atOnce
	ts := roomTimes[:]
	if n > len(ts) {
		ts = make([]atOnce, n)
	}
	var room [128]int64
	slides := counters(room[:], n*int(perSec))
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
		m := &ms[i-from]
		m.Start = name
		m.InFlightMax = ts[i-from].surely(m)
		m.PassPeak = slices.Max(slides[(i-from)*perSec : (i-from+1)*perSec])
		dst = append(dst, *m) // which is where it is, or behind that
	}
	return dst
}

// addSeconds adds the records of the seconds from from on, and their slides. It returns the first second from which on
// all are known.
func (s *Statistic) addSeconds(from int64, open leap.Reading, ms []MetricNode, ts []atOnce, slides []int64) (known int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(open)
	perSec := s.first.shape.perSec
	next, to := max(from, s.since), from+int64(len(ms))
	idle := func(until, inFlight int64) {
		for ; next < until; next++ {
			ms[next-from].addIdle(inFlight, &ts[next-from])
		}
	}
	s.eachRecord(next, to, func(i int64, b []byte) {
		var rec sealed
		rec.unpack(b, perSec, slides[(i-from)*perSec:(i-from+1)*perSec])
		idle(i, rec.began)
		ms[i-from].add(&rec, &ts[i-from])
		next = i + 1
	})
	if next < to {
		idle(to, s.inFlightAfter(to-1))
	}
	if s.rings == nil {
		return from
	}
	return s.rings.history.dropped + 1
}

// oldest is the first second before the open one whose histogram is kept, or in which the statistic began.
func (s *Statistic) oldest() int64 {
	return max(s.since, s.index-int64(s.first.shape.kept/time.Second))
}

// known reports whether the record of a second, if there was one, was not dropped.
func (s *Statistic) known(index int64) bool {
	return s.rings == nil || index > s.rings.history.dropped
}

// record finds the record of a second, nil if nothing happened in it or it is not known.
func (s *Statistic) record(index int64) (record []byte) {
	s.eachRecord(index, index+1, func(_ int64, b []byte) { record = b })
	return record
}

// eachRecord calls f for the records of the seconds from from to before to, ascending: of those in the history, which
// have no histogram, and then of those that have one.
func (s *Statistic) eachRecord(from, to int64, f func(index int64, record []byte)) {
	r := s.rings
	if r == nil {
		return
	}
	each := func(i int64, b []byte) bool {
		f(i, b)
		return true
	}
	if aged := r.minute.dropped; from <= aged {
		r.history.seek(from)
		r.history.each(from, to, each)
		from = aged + 1
	}
	if from < to {
		r.minute.seek(from)
		r.minute.each(from, to, each)
	}
}

// inFlightAfter is what the first recorded second after a second began with.
func (s *Statistic) inFlightAfter(index int64) int64 {
	r := s.rings
	if r == nil {
		return s.began
	}
	var rec sealed
	found := false
	first := func(_ int64, b []byte) bool {
		rec.unpack(b, s.first.shape.perSec, nil)
		found = true
		return false
	}
	if index < r.minute.dropped {
		r.history.each(index+1, math.MaxInt64, first)
	}
	if !found {
		r.minute.each(index+1, math.MaxInt64, first)
	}
	if !found {
		return s.began
	}
	return rec.began
}
