package node

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// stripe is a part of the open bucket with its own lock: its counts, the calls in flight that entered by it, and the
// response times of the open second.
//
// A call enters with one atomic addition to entered. All other fields are plain memory under mu, because ten additions
// under a lock cost as much as one atomic addition. To end a bucket, the holder of mu loads entered once. Calls that
// this value includes belong to the bucket that ends. Later calls belong to the next bucket, whatever their stamp is.
// Between two exits, the calls in flight only grow, so it is enough to compare their number with the maximum before
// each exit and at the end of the bucket.
//
// The order of the fields is the order of use. A call touches lines 1 and 2 of its stripe, and one cache line of a
// page. For a resource that is not in the cache, these three misses are the cost of a call.
//
//	line 1: mu  end  config  page  entered  exited  maxInFlight  length ...
//	line 2: open (tally)
//	line 3: fields that only turns, contention and rare calls use
type stripe struct {
	mu             sync.Mutex
	end            atomic.Int64 // the end mark; see the package comment
	config         *Config
	page           *page[uint16] // the page of completions that was used last
	entered        atomic.Uint64 // the call word: number and stamps of the entries; see the package comment
	exited         uint32        // number of exits; wraps
	maxInFlight    int32         // highest number of calls in flight seen so far in the open second
	length         atomic.Int32  // length of the open bucket in nanoseconds; changes together with end
	pageNo         int16         // number of page
	needsRebalance bool          // goroutines often find mu locked

	open tally

	enteredAtStart  uint64        // entered at the start of the open bucket
	inFlightAtStart int32         // calls in flight at the start of the open bucket
	reported        uint32        // calls in flight that were added to the counters
	lateEntry       time.Duration // time from late stamps to the start of their buckets
	contended       uint16        // times that mu was found locked, in the open bucket and since the last rebalance
	backoff         uint8         // number of times that the threshold of contended was doubled
	contendedFrom   uint32        // value of exited when contended was last reset
	rtExcess        time.Duration // total response time that is not part of the call-seconds; wraps
	completions     *completions  // nil until a call ends
	owner           *Statistic
}

// counts returns the counts of the open bucket, up to the given value of entered. mu must be held.
func (st *stripe) counts(entered uint64) Counts {
	o := &st.open
	return Counts{
		Pass:  saturate(o.Pass, callsIn(entered-st.enteredAtStart)),
		Block: o.Block, Complete: o.Complete, Exception: o.Exception,
		RTSum: o.RTSum, RTMin: o.RTMin, RTMax: o.RTMax,
	}
}

// closeBucket empties the open bucket, which ends at the reading end. It returns the counts of the bucket and its
// call-seconds. mu must be held.
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
// line. No other stripe then shares the two lines that a call uses.
type paddedStripe struct {
	_ [8]byte
	stripe
	_ [8]byte
}

// lock locks mu, and records contention if it has to wait.
func (st *stripe) lock() {
	if !st.mu.TryLock() {
		st.lockContended()
	}
}

// lockContended locks mu after a failed attempt.
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
