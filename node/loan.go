package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Loan is passes that were borrowed from a bucket to come, from [Statistic.Occupy]: one call that waits for that bucket
// to begin. It must be ended once, by [Loan.Call] or by [Loan.Cancel]. The zero value is no loan.
type Loan struct {
	stat *Statistic
	at   time.Duration
	n    int64
}

// loan is the passes borrowed from one bucket. A statistic keeps one for each bucket that calls have borrowed from.
type loan struct {
	at            time.Duration // line time at which the bucket starts
	calls, passes int64
}

// Occupy borrows n passes from the bucket that starts at the line time bucket, for one call. When that bucket begins,
// they pass in it and the call is in flight, however late the statistic turns: every view has the pass in its own second,
// and no other second changes. Occupy reports false if the bucket has begun at the reading now, or if the statistic is
// retired.
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

// Call turns the statistic to the reading now. If the bucket has begun, the loan has passed, and this is the call; its
// response time counts from the reading entered. Otherwise it reports false, and the loan goes on.
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
	// Where it has ended, and its second was slewed, this is off by that.
	began := s.end.Add(l.at - s.start - time.Duration(s.first.length.Load()))
	*l = Loan{}
	s.first.mu.Lock()
	s.first.open.inFlightTime -= tickRemainder(entered) // which Exit adds
	s.first.rtExcess += began.Sub(entered)
	s.first.mu.Unlock()
	return Call{st: &s.first, entered: entered, batch: batch{n: uint32(n)}}, true
}

// Cancel gives the passes back. It reports false if the bucket has begun at the reading now: the loan has passed then.
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

// waiting is how many calls have borrowed from buckets to come, at the reading now, and how many passes.
func (s *Statistic) waiting(now leap.Reading) (calls, passes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	for _, l := range s.history.loans {
		calls, passes = calls+l.calls, saturate(passes, l.passes)
	}
	return calls, passes
}

// findLoan returns the index of a bucket among the loans, which are ascending.
func (r *history) findLoan(bucket time.Duration) (int, bool) {
	return slices.BinarySearchFunc(r.loans, bucket, func(l loan, at time.Duration) int { return cmp.Compare(l.at, at) })
}

// nextLoan takes the earliest loan from a bucket that starts at the line time to or before. Holds all locks.
func (s *Statistic) nextLoan(to time.Duration) (loan, bool) {
	if len(s.history.loans) == 0 || s.history.loans[0].at > to {
		return loan{}, false
	}
	l := s.history.loans[0]
	s.history.loans = slices.Delete(s.history.loans, 0, 1)
	return l, true
}

// lend lets the borrowed calls pass in the bucket that is open. Holds all locks.
func (s *Statistic) applyLoan(l loan) {
	st := &s.first
	s.borrowers -= uint32(l.calls) // what counters have counted stays
	st.addInFlight(l.calls, st.bucketEnd().Add(-time.Duration(st.length.Load())))
	st.open.Pass = saturate(st.open.Pass, l.passes)
	s.history.occupied = saturate(s.history.occupied, l.passes)
}
