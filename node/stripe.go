package node

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// stripe is a part of the open bucket with its own lock. It has the counts of the calls that entered by it, the number
// of them in flight, and the response times of the open second.
//
// A call enters with one atomic addition to entered. All other fields are plain memory under mu: ten additions under a
// lock cost as much as one atomic addition. To end a bucket, the holder of mu loads entered once. The calls that this
// value includes belong to the bucket that ends, and later calls to the next bucket, whatever their stamps are.
//
// Between two exits, the number of calls in flight only grows. It is therefore enough to compare it with the maximum
// before each exit and at the end of the second.
//
// The fields that a call uses come first. A call touches lines 1 and 2 of its stripe, and one cache line of a page. For
// a resource that is not in the cache, these three misses are the cost of a call.
//
//	line 1: mu  end  config  page  entered  exited  maxInFlight  length ...
//	line 2: open (tally)
//	line 3: fields that only turns, contention and rare calls use
type stripe struct {
	mu             sync.Mutex
	end            atomic.Int64 // the end mark; see the package comment
	config         *Config
	page           *page[uint16] // the page of completions that the last completion used
	entered        atomic.Uint64 // the call word: number and stamps of the entries; see the package comment
	exited         uint32        // number of exits; wraps
	maxInFlight    int32         // highest number of calls in flight seen so far in the open second
	length         atomic.Int32  // length of the open bucket in nanoseconds; changes together with end
	pageNo         int16         // index of page
	needsRebalance bool          // set by noteContention: goroutines often find mu locked

	open tally

	enteredAtStart  uint64        // value of entered at the start of the open bucket
	inFlightAtStart int32         // calls in flight at the start of the open bucket
	reported        uint32        // number of calls that the stripe has added to the counters
	lateEntry       time.Duration // time that late entries and slewing added, for minConcurrency
	contended       uint16        // how often mu was found locked in the open bucket, since the last rebalance
	backoff         uint8         // how often the threshold of contended was doubled
	contendedFrom   uint32        // value of exited when contended was last reset
	rtExcess        time.Duration // sum of response times minus call-seconds, where they differ; wraps
	completions     *completions  // nil until a call ends
	owner           *Statistic
}

// counts returns the counts of the open bucket. It includes the entries up to the given value of the call word. mu must
// be held.
func (st *stripe) counts(entered uint64) Counts {
	o := &st.open
	return Counts{
		Pass:  saturate(o.Pass, callsIn(entered-st.enteredAtStart)),
		Block: o.Block, Complete: o.Complete, Exception: o.Exception,
		RTSum: o.RTSum, RTMin: o.RTMin, RTMax: o.RTMax,
	}
}

// closeBucket ends the open bucket at the reading end. It returns the counts and the call-seconds of the bucket, and
// sets the counts of the stripe to 0. mu must be held.
func (st *stripe) closeBucket(end leap.Reading) (Counts, time.Duration) {
	if st.resetContention(); st.backoff > 0 {
		st.backoff--
	}
	entered := st.entered.Load()
	spent := st.inFlightTime(entered, end)
	st.inFlightAtStart = st.inFlightAt(entered)
	if entered == st.enteredAtStart && st.open == (tally{}) {
		return Counts{}, spent
	}
	sum := st.counts(entered)
	st.open, st.enteredAtStart = tally{}, entered
	return sum, spent
}

// paddedStripe is a stripe with padding. Its size is three cache lines, so the allocator places it at the start of a
// line, and no other object shares the two lines that a call uses.
type paddedStripe struct {
	_ [8]byte
	stripe
	_ [8]byte
}

// lock locks mu. If it has to wait, it notes the contention.
func (st *stripe) lock() {
	if !st.mu.TryLock() {
		st.lockContended()
	}
}

// lockContended locks mu after a failed attempt, and notes the contention.
func (st *stripe) lockContended() {
	st.mu.Lock()
	st.noteContention()
}

// unlock unlocks mu. If goroutines often found it locked, unlock also rebalances the stripes of the statistic.
func (st *stripe) unlock() {
	often := st.needsRebalance
	st.mu.Unlock()
	if often {
		st.owner.rebalance(st)
	}
}
