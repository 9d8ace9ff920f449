package node

import (
	"math"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// This file contains the end mark of the open bucket and the turn to the next bucket. The package comment describes the
// states of the end mark, and the order in which calls and turns access it.

// slowPathBit is the lowest bit of an end mark. If the bit is set, calls enter under the lock of the stripe. It is set
// while a statistic has counters, and in closedMark.
const slowPathBit = 1

// closedMark is the end mark of all stripes during a turn, and of a retired statistic. The end that it contains is
// before every reading. To every writer, the bucket therefore seems to have ended, so the writer takes a lock.
const closedMark = math.MinInt64 | slowPathBit

// endMark returns the end mark for the open bucket: twice the reading of its end, plus slowPathBit if s has counters.
func (s *Statistic) endMark() int64 {
	m := int64(s.end) << 1
	if s.counters != nil {
		m |= slowPathBit
	}
	return m
}

// endOf returns the end that an end mark contains.
func endOf(mark int64) leap.Reading { return leap.Reading(mark >> 1) }

// bucketEnd returns the end of the open bucket.
func (st *stripe) bucketEnd() leap.Reading { return endOf(st.end.Load()) }

// hasCounters reports whether the statistic has counters. During a turn, and once the statistic is retired, hasCounters
// returns false.
func (st *stripe) hasCounters() bool {
	mark := st.end.Load()
	return mark&slowPathBit != 0 && mark != closedMark
}

// canEnterLockFree reports whether a call with the stamp now may enter without the lock. The parameter mark is the end
// mark that the caller has loaded. There are two conditions: slowPathBit is not set in the mark, and the stamp lies in
// the open bucket.
func (st *stripe) canEnterLockFree(mark int64, now leap.Reading) bool {
	return mark&slowPathBit == 0 && uint64(endOf(mark)-now-1) < uint64(st.length.Load())
}

// reconcileEnter finishes the entry of a call with the stamp now. The call has entered through st without the lock, and
// meanwhile the end mark has changed. If s is retired, reconcileEnter takes the call back and returns true.
//
// Otherwise the call stays counted, and reconcileEnter returns false. If s has turned, there are two cases. If the turn
// has seen the call, the call counts in the bucket that has ended. If not, the call counts in the next bucket, and its
// stamp is late. reconcileEnter cannot distinguish these two cases. In both cases, it increases lateEntry by the time
// from the stamp to the start of the open bucket. In the first case this increase is unnecessary: it may make the
// result of minConcurrency too low, but never too high. reconcileEnter also updates the counters.
func (s *Statistic) reconcileEnter(st *stripe, now leap.Reading) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired() {
		st.entered.Add(-entryWord(now))
		return true
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.effectiveEntry(now)
	st.updateCounters()
	return false
}

// turn turns the statistic to the reading now. It unlocks st before the turn, and locks st again after the turn.
func (st *stripe) turn(now leap.Reading) {
	st.mu.Unlock()
	st.owner.Seal(now)
	st.mu.Lock()
}

// Seal turns s to the reading now. All seconds before the second that contains this reading are then sealed, unless the
// reading is ahead of the clock (see advance). If the open bucket already contains the reading, Seal costs a lock and a
// comparison.
func (s *Statistic) Seal(now leap.Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
}

// advance turns s to the reading now, unless the open bucket of s already contains this reading or is later. It moves
// the open bucket into the window (fold), seals the seconds that have ended (skipTo), and opens the bucket that
// contains the reading (openBucket). If calls have borrowed passes from a skipped bucket, advance stops at that bucket
// and counts the passes in it:
//
//	open bucket         skipped buckets                  bucket of the reading
//	|--- fold --->|--- skipTo (call-seconds only) ------>|--- openBucket
//	              ^ loans from skipped buckets are applied in their own bucket
//
// If now is ahead of the clock, advance turns only to the current reading of the clock, because no caller may open a
// bucket before its time. A retired statistic does not turn. mu must be held.
func (s *Statistic) advance(now leap.Reading) {
	if now < s.end || s.retired() {
		return
	}
	if now = min(now, s.first.config.line.Now()); now < s.end {
		return
	}
	s.lockStripes()
	defer s.unlockStripes()
	for st := range s.stripes {
		st.end.Store(closedMark) // from here on, a call that enters without a lock may count in the next bucket
	}
	s.fold()
	next := s.first.config.line.At(now)
	at := s.first.config.second.Start(next.LineTime(now))
	for loan, ok := s.nextLoan(at - 1); ok; loan, ok = s.nextLoan(at - 1) {
		// The statistic was not used during the bucket of this loan. The passes of the loan count in that bucket
		// anyway.
		s.skipTo(loan.at)
		s.applyLoan(loan)
		s.fold()
	}
	s.skipTo(at)
	s.openBucket(next, now)
	if loan, ok := s.nextLoan(at); ok {
		s.applyLoan(loan)
	}
}

// openBucket opens the bucket of the reading now, which must be in the given second. skipTo has counted the time before
// this bucket as if all seconds had the usual length. If slewing has moved the start of the bucket, openBucket corrects
// the call-seconds of the calls in flight. The correction for each call is the time by which the start has moved. mu
// and all stripe locks must be held, except during Init.
func (s *Statistic) openBucket(second leap.Second, now leap.Reading) {
	window := &s.first.config.second
	s.second = second.Index
	s.start = window.Start(second.LineTime(now))
	begin, end := second.ReadingAt(s.start), second.ReadingAt(s.start+window.Length())
	slewed := begin.Sub(s.end.Add(-window.Length()))
	s.end = end
	for st := range s.stripes {
		st.length.Store(int32(end - begin))
		st.end.Store(s.endMark())
		more := time.Duration(st.inFlightAtStart) * slewed
		s.inFlightTime += more
		st.lateEntry += max(more, 0)
	}
	if r := s.history; r != emptyHistory {
		r.windowPasses = 0
		for _, b := range r.window.Window(s.start, time.Second) {
			r.windowPasses = saturate(r.windowPasses, b.Pass)
		}
	}
}

// skipTo moves s from the open bucket to the bucket that starts at the line time target. fold must already have moved
// the counts of the open bucket. If the target is in a later second, skipTo seals the open second. The calls in flight
// stay in flight between the two buckets. skipTo adds their call-seconds to the seconds in which they were spent. mu
// and all stripe locks must be held.
func (s *Statistic) skipTo(target time.Duration) {
	length := s.first.config.second.Length()
	from, index := s.start+length, secondIndex(target)
	var inFlight int64
	for st := range s.stripes {
		inFlight += int64(st.inFlightAtStart)
	}
	if index > s.second {
		s.inFlightTime += time.Duration(inFlight) * (secondStart(s.second+1) - from)
		s.seal(index)
		if inFlight > 0 {
			s.history.inFlightTime.add(callTime{seconds: times(inFlight, index-s.second-1)})
		}
		s.second, from = index, secondStart(index)
	}
	s.inFlightTime += time.Duration(inFlight) * (target - from)
	s.start, s.end = target, s.end.Add(target-s.start) // openBucket sets the exact end
	for st := range s.stripes {
		st.length.Store(int32(length))
	}
}

// fold moves the counts of the open bucket from the stripes into the window, and adds them to the totals. If the counts
// are all 0, fold opens no bucket in the window, so that idle statistics stay small.
//
// In a second that slewing has lengthened, each call in flight spends up to 1 % more than one call-second. fold adds an
// upper bound of this excess to lateEntry: a hundredth of the call-seconds. minConcurrency subtracts lateEntry, so the
// excess does not raise the average in flight. mu and all stripe locks must be held.
func (s *Statistic) fold() {
	var sum Counts
	slewed := time.Duration(s.first.length.Load()) > s.first.config.second.Length()+1
	for st := range s.stripes {
		c, spent := st.closeBucket(s.end)
		sum.add(&c)
		if s.inFlightTime += spent; slewed {
			st.lateEntry += max(spent, 0)/100 + 1
		}
	}
	sum.OccupiedPass = s.history.occupied
	if sum.Idle() {
		return
	}
	r := s.ensureHistory()
	r.occupied = 0
	r.window.Open(s.start).add(&sum)
	r.total.add(&sum)
	r.rtSum += sum.RTSum
}
