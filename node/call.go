package node

import (
	"math"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Call is a call in flight, from [Statistic.Enter] to [Call.Exit]. Exit counts the completion in the stripe through
// which the call entered, so no stripe has a negative number of calls in flight. A Call must not be copied. Exit has no
// effect on the zero Call.
type Call struct {
	_       noCopy
	st      *stripe
	entered leap.Reading // start of the response time; Backdate changes it under the stripe's lock
	batch   batch
}

// batch holds n, the number of calls that a Call represents, and note, a number that the caller may set. The two fields
// share a struct so that Call has fewer fields. A collector.Entry consists of a Call and a pointer, and the compiler
// keeps a struct in registers only if it has at most four fields and four words.
type batch struct {
	n    uint32 // at least 1 until the first Exit, then 0; guarded by the stripe's lock
	note uint32
}

// clampBatch limits n to [1, 2^32-1].
func clampBatch(n int64) int64 { return min(max(n, 1), math.MaxUint32) }

// noCopy makes go vet report copies of a struct that contains a noCopy.
type noCopy struct{}

func (*noCopy) Lock() {}

func (*noCopy) Unlock() {}

// IsZero reports whether c is the zero Call, which Enter returns if the statistic is retired.
func (c *Call) IsZero() bool { return c.st == nil }

// Enter records the entry of an admitted call, or of a batch of n calls, at the reading now: n passes and one call in
// flight. It clamps n to [1, 2^32-1]. If s is retired, Enter records nothing and returns the zero Call.
func (s *Statistic) Enter(now leap.Reading, n int64) Call {
	st := s.pick()
	mark := st.end.Load()
	// The lock is needed for a batch, for a stamp outside of the open bucket, and if s has counters, turns or is
	// retired.
	if n > 1 || !st.canEnterLockFree(mark, now) {
		if b := s.Hold(now); !b.IsZero() {
			return b.Enter(n)
		}
		return Call{}
	}
	// If the bucket turns between the check and this addition, the call counts in the next bucket, with a late stamp.
	st.entered.Add(entryWord(now))
	if st.end.Load() != mark && s.reconcileEnter(st, now) {
		return Call{}
	}
	return Call{st: st, entered: now, batch: batch{n: 1}}
}

// Resume records the entry of a call, or of a batch of n calls, that another process has admitted. That process has
// counted the n passes, so Resume counts none. The call is in flight from the reading now, and counts n completions
// when it ends. Resume clamps n to [1, 2^32-1]. If s is retired, Resume records nothing and returns the zero Call.
func (s *Statistic) Resume(now leap.Reading, n int64) Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	s.lockStripes()
	defer s.unlockStripes()
	if s.retired() {
		return Call{}
	}
	s.ensureHistory() // with emptyHistory, seal would create no record, although a call is in flight
	s.first.addInFlight(1, s.first.effectiveEntry(now))
	// addInFlight does not round the stamp, but Exit will correct the rounding of a stamp. Cancel this correction here.
	s.first.open.inFlightTime -= tickRemainder(now)
	s.first.updateCounters()
	return Call{st: &s.first, entered: now, batch: batch{n: uint32(clampBatch(n))}}
}

// End calls [Call.Exit] with the current reading of the timeline.
func (c *Call) End(failed bool, code Code) int64 {
	if c.st == nil {
		return 0
	}
	return c.Exit(c.st.config.line.Now(), failed, code)
}

// SetNote stores a note in c. The calling goroutine must be the only one that uses c.
func (c *Call) SetNote(note uint32) { c.batch.note = note }

// Note returns the note that SetNote stored, or 0.
func (c *Call) Note() uint32 { return c.batch.note }

// Entered returns the reading at which the response time begins.
func (c *Call) Entered() leap.Reading { return c.entered }

// Backdate moves the start of the response time back to the given reading. It changes neither the calls in flight nor
// the call-seconds. Backdate has no effect if this reading is not before [Call.Entered], or if the call has ended.
func (c *Call) Backdate(start leap.Reading) {
	st := c.st
	if st == nil || start >= c.entered {
		return
	}
	st.lock()
	defer st.unlock()
	if c.batch.n == 0 {
		return
	}
	// The call word contains the stamp of the entry, rounded up. Exit will correct the rounding of c.entered, which
	// Backdate sets to the given reading. Add the difference between the corrections of the stamp and of this reading.
	st.open.inFlightTime += tickRemainder(c.entered) - tickRemainder(start)
	st.rtExcess += c.entered.Sub(start)
	c.entered = start
}

// Exit records the end of c at the reading now. A call that entered as a batch of n calls counts as n completions with
// the same response time; for all other calls, n is 1. If failed is true, the completions are also n exceptions. If
// code is not 0, the completions also count for this code. After Exit, c is no longer in flight. Exit makes all of
// these changes under one lock, so no reader sees only some of them.
//
// Only the first Exit of a Call counts, even if several goroutines call Exit. Exit returns n, or 0 if c has already
// ended. If now is before [Call.Entered], the response time is 0.
func (c *Call) Exit(now leap.Reading, failed bool, code Code) int64 {
	st := c.st
	if st == nil {
		return 0
	}
	rt := elapsed(c.entered, now)
	cell := st.config.layout.cell(rt)
	if !st.mu.TryLock() { // stripe.lock, inlined by hand
		st.lockContended()
	}
	n := int64(c.batch.n)
	if n == 0 {
		st.unlock()
		return 0
	}
	c.batch.n = 0
	end := st.end.Load()
	if now >= endOf(end) {
		st.turn(now)
		end = st.end.Load()
	}
	st.complete(rt, cell, n, failed, code)
	if n > 1 { // the batch has n response times, but was one call in flight
		st.rtExcess += rt * time.Duration(n-1)
	}
	if inFlight := st.inFlightNow(); inFlight > st.maxInFlight {
		st.maxInFlight = inFlight
	}
	st.exited++
	st.open.inFlightTime += tickRemainder(c.entered) - max(int64(endOf(end)-max(now, c.entered)), 0)
	if end&slowPathBit != 0 {
		st.updateCounters()
	}
	often := st.needsRebalance // stripe.unlock, inlined by hand
	st.mu.Unlock()
	if often {
		st.owner.rebalance(st)
	}
	return n
}

// elapsed returns the time from start to end. It returns 0 if end is before start, and the largest time.Duration if the
// time does not fit into a time.Duration.
func elapsed(start, end leap.Reading) time.Duration {
	if end <= start {
		return 0
	}
	if rt := end.Sub(start); rt > 0 {
		return rt
	}
	return math.MaxInt64
}
