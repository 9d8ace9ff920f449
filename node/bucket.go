package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Bucket is the open bucket of a statistic while a limit decides about a call. [Statistic.Hold] returns it and keeps it
// open. The caller must call exactly one of Enter, Record and Release. Until then the bucket cannot end, and the caller
// must not use the statistic in any other way.
type Bucket struct {
	st  *stripe
	now leap.Reading
}

// Hold locks a stripe of s and returns the open bucket, for a call at the reading now. If the open bucket has ended at
// this reading, Hold first turns s. If the reading is before the open bucket, Hold returns the open bucket anyway,
// because sealed seconds do not change. If s is retired, Hold returns the zero Bucket and locks nothing.
func (s *Statistic) Hold(now leap.Reading) Bucket {
	st := s.pick()
	st.lock()
	if now >= st.bucketEnd() {
		st.turn(now)
	}
	if st.end.Load() == closedMark {
		st.unlock()
		return Bucket{}
	}
	return Bucket{st, now}
}

// IsZero reports whether b is the zero Bucket, which Hold returns for a retired statistic.
func (b Bucket) IsZero() bool { return b.st == nil }

// At returns the start of the bucket, in line time.
func (b Bucket) At() time.Duration { return b.st.owner.start }

// Enter records the entry of the call for which Hold returned b: n passes in the bucket, and one call in flight. It
// clamps n to [1, 2^32-1], as [Statistic.Enter] does. Enter then releases the bucket.
func (b Bucket) Enter(n int64) Call {
	st := b.st
	n = clampBatch(n)
	st.open.Pass = saturate(st.open.Pass, n-1)
	st.enterLocked(b.now)
	if st.end.Load()&slowPathBit != 0 {
		st.updateCounters()
	}
	st.unlock()
	return Call{st: st, entered: b.now, batch: batch{n: uint32(n)}}
}

// Record counts n calls that have already ended and were never in flight. In a single change, it counts n passes and n
// completions with the response time rt. The parameter failed reports whether the calls failed, and code is their code
// (0 for none). Record treats an n below 1 as 1, and a negative rt as 0. Record then releases the bucket.
func (b Bucket) Record(rt time.Duration, n int64, failed bool, code Code) {
	st := b.st
	n, rt = max(n, 1), max(rt, 0)
	st.open.Pass = saturate(st.open.Pass, n)
	st.complete(rt, st.config.layout.cell(rt), n, failed, code)
	st.rtExcess += rt * time.Duration(n) // these response times add no call-seconds
	st.unlock()
}

// Release releases the bucket. The call for which Hold returned b is not counted.
func (b Bucket) Release() { b.st.unlock() }

// Block counts n refused calls at the reading now, and returns true. It treats an n below 1 as 1. If s is retired,
// Block counts nothing and returns false.
func (s *Statistic) Block(now leap.Reading, n int64) bool {
	b := s.Hold(now)
	if b.IsZero() {
		return false
	}
	b.st.open.Block = saturate(b.st.open.Block, max(n, 1))
	b.Release()
	return true
}
