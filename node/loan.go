package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// OccupyTimeout is the longest time that a call may wait for the bucket from which it borrows passes. Sentinel has the
// same timeout.
const OccupyTimeout = 500 * time.Millisecond

// Loan is a call that waits for a later bucket. The call has borrowed its passes from that bucket by
// [Statistic.Occupy]. The caller must end each Loan once, by [Loan.Call] or [Loan.Cancel]. The zero value is not a
// loan.
type Loan struct {
	stat *Statistic
	at   time.Duration // start of the later bucket, in line time
	n    int64         // number of borrowed passes
}

// The life of a loan:
//
//	bucket 4                    bucket 5                    bucket 6
//	--------                    --------                    --------
//	Occupy: borrow a pass       the call waits              turn: count the pass, and one call in flight
//	from bucket 6                                           Loan.Call: return the Call
//	                            or Loan.Cancel: end the     Call.Exit: count the completion
//	                            loan, count nothing
//
// In every view, the pass must count in the bucket from which it was borrowed. The waiting goroutine may wake up too
// late to count the pass in that bucket. The goroutine that turns the statistic to that bucket therefore counts the
// pass. Until then, the statistic stores one loan struct for each bucket from which calls have borrowed. The struct
// holds the sums over these calls.

// loan holds the number of calls that have borrowed from one bucket, and the sum of the passes that they have borrowed.
type loan struct {
	at            time.Duration // start of the bucket, in line time
	calls, passes int64
}

// Occupy borrows n passes for one call from a later bucket. The parameter bucket is the start of the later bucket in
// line time. When the later bucket begins, the passes count in this bucket, and the call is in flight. Even if s turns
// to this bucket much later, every view shows the passes in the second of this bucket. Occupy clamps n to [1, 2^32-1].
// It returns false if the later bucket has already begun at the reading now, or if s is retired.
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
	// The insertion is cheap, because the slice is short: a call borrows only from buckets that begin within
	// OccupyTimeout, half a second.
	i, found := r.findLoan(bucket)
	if !found {
		r.loans = slices.Insert(r.loans, i, loan{at: bucket})
	}
	r.loans[i].calls++
	r.loans[i].passes = saturate(r.loans[i].passes, n)
	s.borrowers++
	s.first.updateCounters()
	return Loan{stat: s, at: bucket, n: n}, true
}

// Call turns the statistic to the reading now. If the bucket of the loan has then begun, the borrowed passes are
// counted. In this case Call ends the loan, and returns the call that waited. The parameter entered is the reading at
// which this call began to wait; its response time begins at this reading. If the bucket of the loan has not begun,
// Call returns false, and the call continues to wait.
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
	// began is the reading at which the bucket of the loan began. If this bucket has already ended and its second was
	// slewed, began differs from the true start by the slewed time.
	began := s.end.Add(l.at - s.start - time.Duration(s.first.length.Load()))
	*l = Loan{}
	s.first.mu.Lock()
	// Exit will add tickRemainder(entered), to correct a rounded stamp. This call has no rounded stamp, so subtract the
	// correction here.
	s.first.open.inFlightTime -= tickRemainder(entered)
	s.first.rtExcess += began.Sub(entered) // the wait counts in the response time, but not as call-seconds
	s.first.mu.Unlock()
	return Call{st: &s.first, entered: entered, batch: batch{n: uint32(n)}}, true
}

// Cancel ends the loan, gives the borrowed passes back to the bucket of the loan, and returns true. If this bucket has
// begun at the reading now, the passes are already counted. Cancel then returns false, and the caller must end the loan
// with [Loan.Call].
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

// waiting returns the number of calls that wait for later buckets at the reading now, and the sum of the passes that
// these calls have borrowed.
func (s *Statistic) waiting(now leap.Reading) (calls, passes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	for _, l := range s.history.loans {
		calls, passes = calls+l.calls, saturate(passes, l.passes)
	}
	return calls, passes
}

// findLoan returns the index of the loan struct for a bucket, and true. If there is no such struct, findLoan returns
// the index at which to insert one, and false.
func (r *history) findLoan(bucket time.Duration) (int, bool) {
	return slices.BinarySearchFunc(r.loans, bucket, func(l loan, at time.Duration) int { return cmp.Compare(l.at, at) })
}

// nextLoan removes the earliest loan and returns it, if its bucket starts at the line time latest or before. Otherwise
// nextLoan returns false. All locks must be held.
func (s *Statistic) nextLoan(latest time.Duration) (loan, bool) {
	if len(s.history.loans) == 0 || s.history.loans[0].at > latest {
		return loan{}, false
	}
	l := s.history.loans[0]
	s.history.loans = slices.Delete(s.history.loans, 0, 1)
	return l, true
}

// applyLoan counts the passes of l in the open bucket, which must be the bucket of l. It also adds the calls of l to
// the calls in flight, from the start of the bucket on. All locks must be held.
func (s *Statistic) applyLoan(l loan) {
	st := &s.first
	s.borrowers -= uint32(l.calls) // the counters stay the same: these calls now count as calls in flight
	st.addInFlight(l.calls, st.bucketEnd().Add(-time.Duration(st.length.Load())))
	st.open.Pass = saturate(st.open.Pass, l.passes)
	s.history.occupied = saturate(s.history.occupied, l.passes)
}
