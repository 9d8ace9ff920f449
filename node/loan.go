package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// OccupyTimeout is the longest time that a call may wait for its borrowed passes: Sentinel's value.
const OccupyTimeout = 500 * time.Millisecond

// Loan is a call that has borrowed its passes from a later bucket with [Statistic.Occupy], and waits for this bucket.
// End each Loan once, by [Loan.Call] or [Loan.Cancel]. The zero value is not a loan.
type Loan struct {
	stat *Statistic
	at   time.Duration // start of the bucket, in line time
	n    int64
}

// The life of a loan:
//
//	bucket 4                  bucket 5                  bucket 6
//	Occupy: borrow 1 from 6   (waits)                   turn: the pass counts, 1 in flight
//	                                                    Call: the waiting call becomes a Call
//	                          or Cancel: nothing was     End
//	                          counted, the loan is gone
//
// The goroutine that turns into the bucket counts the pass. The waiting goroutine does not, because it may wake up
// late, and the pass must be in its own bucket in every view. Until the turn, the statistic keeps one loan for each
// bucket, with sums over its calls.

// loan sums the passes borrowed from one bucket. A statistic has one loan for each bucket with borrowed passes.
type loan struct {
	at            time.Duration // start of the bucket, in line time
	calls, passes int64
}

// Occupy borrows n passes for one call from a later bucket; the parameter bucket is its start in line time. When that
// bucket begins, the passes count in it and the call is in flight, however late the statistic turns. Every view thus
// shows the pass in its own second, and no other second changes. Occupy returns false if the bucket has begun at the
// reading now, or if s is retired.
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

// Call turns the statistic to the reading now. If the bucket has begun, the borrowed passes have been counted, and Call
// returns the call; its response time begins at the reading entered. Otherwise Call returns false, and the loan
// continues.
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
	// If the bucket has already ended and its second was slewed, began is off by the slewed time.
	began := s.end.Add(l.at - s.start - time.Duration(s.first.length.Load()))
	*l = Loan{}
	s.first.mu.Lock()
	s.first.open.inFlightTime -= tickRemainder(entered) // Exit adds it
	s.first.rtExcess += began.Sub(entered)
	s.first.mu.Unlock()
	return Call{st: &s.first, entered: entered, batch: batch{n: uint32(n)}}, true
}

// Cancel gives the borrowed passes back. If the bucket has begun at the reading now, the passes have been counted:
// Cancel returns false, and the caller must end the loan with [Loan.Call].
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

// waiting returns the calls that wait for later buckets at the reading now, and their passes.
func (s *Statistic) waiting(now leap.Reading) (calls, passes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	for _, l := range s.history.loans {
		calls, passes = calls+l.calls, saturate(passes, l.passes)
	}
	return calls, passes
}

// findLoan returns the index of the loan of a bucket. If the bucket has no loan, it returns the index at which to
// insert one, and false.
func (r *history) findLoan(bucket time.Duration) (int, bool) {
	return slices.BinarySearchFunc(r.loans, bucket, func(l loan, at time.Duration) int { return cmp.Compare(l.at, at) })
}

// nextLoan removes and returns the earliest loan, if its bucket does not start after the line time latest. All locks
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
	s.borrowers -= uint32(l.calls) // the counters do not change: waiting calls become calls in flight
	st.addInFlight(l.calls, st.bucketEnd().Add(-time.Duration(st.length.Load())))
	st.open.Pass = saturate(st.open.Pass, l.passes)
	s.history.occupied = saturate(s.history.occupied, l.passes)
}
