package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// OccupyTimeout is the longest time that a call may wait for the bucket from which it borrows passes. It is Sentinel's
// value.
const OccupyTimeout = 500 * time.Millisecond

// Loan is a call that waits for a later bucket, from which it has borrowed its passes by [Statistic.Occupy]. End each
// Loan once, by [Loan.Call] or [Loan.Cancel]. The zero value is not a loan.
type Loan struct {
	stat *Statistic
	at   time.Duration // start of the later bucket, in line time
	n    int64         // number of borrowed passes
}

// The life of a loan:
//
//	bucket 4                  bucket 5                  bucket 6
//	Occupy: borrow 1 from 6   (waits)                   turn: the pass counts, 1 in flight
//	                                                    Call: the waiting call becomes a Call
//	                          or Cancel: nothing was     End
//	                          counted, the loan is gone
//
// In every view, the pass must count in the bucket from which it was borrowed. The waiting goroutine may wake up too
// late for that. The goroutine that turns to the bucket therefore counts the pass. Until then, the statistic has one
// loan struct for each bucket, with the sums over all calls that wait for this bucket.

// loan holds the sums of all calls that have borrowed passes from one bucket.
type loan struct {
	at            time.Duration // start of the bucket, in line time
	calls, passes int64
}

// Occupy borrows n passes for one call from a later bucket. The parameter bucket is the start of that bucket in line
// time. When the later bucket begins, the passes count in it and the call is in flight, even if s turns to this bucket
// much later. Every view therefore shows the passes in the second of the later bucket. Occupy returns false if the
// bucket has begun at the reading now, or if s is retired.
func (s *Statistic) Occupy(now leap.Reading, bucket time.Duration, n int64) (Loan, bool) {
	n = clampBatch(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	if bucket <= s.start || s.retired() {
		return Loan{}, false
	}
	s.lockStripes()
	defer s.unlockStripes()
	r := s.ensureHistory()
	// Inserting is cheap, because the slice is short: a call borrows only from buckets that begin within OccupyTimeout,
	// half a second.
	i, there := r.findLoan(bucket)
	if !there {
		r.loans = slices.Insert(r.loans, i, loan{at: bucket})
	}
	r.loans[i].calls++
	r.loans[i].passes = saturate(r.loans[i].passes, n)
	s.borrowers++
	s.first.updateCounters()
	return Loan{stat: s, at: bucket, n: n}, true
}

// Call turns the statistic to the reading now. If the bucket of the loan has begun, the borrowed passes are counted,
// and Call returns the call that waited. This call began to wait at the reading entered, and its response time begins
// there. If the bucket has not begun, Call returns false, and the call continues to wait.
func (l *Loan) Call(now, entered leap.Reading) (Call, bool) {
	s := l.stat
	if s == nil {
		return Call{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	if s.start < l.at {
		return Call{}, false
	}
	n := l.n
	// began is the start of the bucket of the loan. If this bucket has already ended and its second was slewed, began
	// differs from the true start by the slewed time.
	began := s.end.Add(l.at - s.start - time.Duration(s.first.length.Load()))
	*l = Loan{}
	s.first.mu.Lock()
	s.first.open.inFlightTime -= tickRemainder(entered) // cancels the correction that Exit adds
	s.first.rtExcess += began.Sub(entered)
	s.first.mu.Unlock()
	return Call{st: &s.first, entered: entered, batch: batch{n: uint32(n)}}, true
}

// Cancel gives the borrowed passes back and returns true. If the bucket of the loan has begun at the reading now, the
// passes are already counted. Cancel then returns false, and the caller must end the loan with [Loan.Call].
func (l *Loan) Cancel(now leap.Reading) bool {
	s := l.stat
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	if s.start >= l.at {
		return false
	}
	s.lockStripes()
	defer s.unlockStripes()
	i, _ := s.history.findLoan(l.at)
	b := &s.history.loans[i]
	b.calls--
	b.passes -= l.n
	if b.calls == 0 {
		s.history.loans = slices.Delete(s.history.loans, i, i+1)
	}
	s.borrowers--
	s.first.updateCounters()
	*l = Loan{}
	return true
}

// waiting returns the number of calls that wait for later buckets at the reading now, and the sum of their passes.
func (s *Statistic) waiting(now leap.Reading) (calls, passes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	for _, l := range s.history.loans {
		calls, passes = calls+l.calls, saturate(passes, l.passes)
	}
	return calls, passes
}

// findLoan returns the index of the loan for a bucket. If there is no such loan, it returns the index at which to
// insert one, and false.
func (r *history) findLoan(bucket time.Duration) (int, bool) {
	return slices.BinarySearchFunc(r.loans, bucket, func(l loan, at time.Duration) int { return cmp.Compare(l.at, at) })
}

// nextLoan removes the earliest loan and returns it, unless its bucket starts after the line time latest. All locks
// must be held.
func (s *Statistic) nextLoan(latest time.Duration) (loan, bool) {
	if len(s.history.loans) == 0 || s.history.loans[0].at > latest {
		return loan{}, false
	}
	l := s.history.loans[0]
	s.history.loans = slices.Delete(s.history.loans, 0, 1)
	return l, true
}

// applyLoan counts the passes of a loan in the open bucket, and adds its calls to the calls in flight. All locks must
// be held.
func (s *Statistic) applyLoan(l loan) {
	st := &s.first
	s.borrowers -= uint32(l.calls) // calls that waited stay in the counters: they are in flight now
	st.addInFlight(l.calls, st.bucketEnd().Add(-time.Duration(st.length.Load())))
	st.open.Pass = saturate(st.open.Pass, l.passes)
	s.history.occupied = saturate(s.history.occupied, l.passes)
}
