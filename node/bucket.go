package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Bucket is the open bucket of a statistic, held by [Statistic.Hold] while a limit decides about a call. The bucket
// cannot end in the meantime. The caller must call exactly one of Enter, Record and Release. Until then it must not use
// the statistic in any other way.
type Bucket struct {
	st  *stripe
	now leap.Reading
}

// Hold returns the bucket for a call at the reading now, and holds the lock of one of its stripes. A reading before the
// open bucket counts in the open bucket, because sealed seconds do not change. If s is retired, Hold returns the zero
// Bucket and holds nothing.
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

// IsZero reports whether b is the zero Bucket, which Hold returns if the statistic is retired.
func (b Bucket) IsZero() bool { return b.st == nil }

// At returns the start of the bucket, in line time.
func (b Bucket) At() time.Duration { return b.st.owner.start }

// Enter records the held call like [Statistic.Enter], and releases the bucket.
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

// Record counts a call that has already ended, as one change: n passes, and n completions of the response time rt,
// failed or not, with a code (0 for none). The call was never in flight. Record raises n to 1 and rt to 0 if they are
// smaller. It releases the bucket.
func (b Bucket) Record(rt time.Duration, n int64, failed bool, code Code) {
	st := b.st
	n, rt = max(n, 1), max(rt, 0)
	st.open.Pass = saturate(st.open.Pass, n)
	st.complete(rt, st.config.layout.cell(rt), n, failed, code)
	st.rtExcess += rt * time.Duration(n) // response times without call-seconds
	st.unlock()
}

// Release releases the bucket and counts nothing.
func (b Bucket) Release() { b.st.unlock() }

// Block counts a refused call at the reading now as max(n, 1) blocks. If the statistic is retired, Block counts nothing
// and returns false.
func (s *Statistic) Block(now leap.Reading, n int64) bool {
	b := s.Hold(now)
	if b.IsZero() {
		return false
	}
	b.st.open.Block = saturate(b.st.open.Block, max(n, 1))
	b.Release()
	return true
}
