package node

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// stripe is a part of the open bucket with its own lock. It has the counts of the calls that entered through it, the
// number of these calls that are in flight, and their response times in the open second.
//
// A call enters with one atomic addition to the field entered. All other counts are plain memory under mu: ten
// additions under a lock cost as much as one atomic addition. A goroutine that closes the bucket holds mu and loads the
// field entered once. The calls that the loaded value includes count in the bucket that ends. Later calls count in the
// next bucket, even if their stamps lie in the bucket that ends.
//
// Between two exits, the number of calls in flight only grows. It is therefore enough to compare this number with the
// maximum before each exit and at the end of the second.
//
// The fields that most calls change come first. A call writes to the cache lines 1 and 2 of its stripe, and to one
// cache line of a page. The exit of the call also reads the pointer completions in line 3, and the beginning of the
// completions struct. If these lines are not in the cache, the cache misses are the main cost of a call.
//
//	line 1: mu  end  config  page  entered  exited  maxInFlight  length ...
//	line 2: open (tally)
//	line 3: fields that most calls do not change
type stripe struct {
	mu             sync.Mutex
	end            atomic.Int64 // the end mark; see the package comment
	config         *Config
	page           *page[uint16] // the page that counted the response time of the last completion
	entered        atomic.Uint64 // the call word: number of entries, sum of their stamps; see the package comment
	exited         uint32        // number of exits, minus the calls that addInFlight added; wraps
	maxInFlight    int32         // maximum in flight in the open second; updated by exits
	length         atomic.Int32  // length of the open bucket in nanoseconds; changes only during a turn
	pageNo         int16         // index of the page in the field page
	needsRebalance bool          // goroutines often find mu locked; set by noteContention
	split          bool          // response times are also counted by code; see SplitByCode

	open tally

	enteredAtStart  uint64        // value of entered at the start of the open bucket
	inFlightAtStart int32         // calls in flight at the start of the open bucket
	reported        uint32        // number of calls that the counters include for this stripe; see updateCounters
	lateEntry       time.Duration // upper bound of the call-seconds from late entries and slewing; see minConcurrency
	contended       uint16        // how often goroutines found mu locked since the last resetContention
	backoff         uint8         // the threshold for contended is doubled this number of times
	contendedFrom   uint32        // value of exited at the last resetContention
	rtExcess        time.Duration // response time minus call-seconds, summed over calls; wraps; see inFlightAge
	completions     *completions  // nil until a call ends
	owner           *Statistic
}

// counts returns the counts of the open bucket. The parameter entered is a value of the call word: the passes include
// the entries that this value includes. mu must be held.
func (st *stripe) counts(entered uint64) Counts {
	o := &st.open
	return Counts{
		Pass:  saturate(o.Pass, callsIn(entered-st.enteredAtStart)),
		Block: o.Block, Complete: o.Complete, Exception: o.Exception,
		RTSum: o.RTSum, RTMin: o.RTMin, RTMax: o.RTMax,
	}
}

// closeBucket closes the open bucket of st. The parameter end is the reading at the end of this bucket. closeBucket
// returns the counts and the call-seconds of the bucket. For the next bucket, it sets the counts of st to 0, and
// inFlightAtStart to the current number of calls in flight. It also calls resetContention and lowers backoff. mu must
// be held.
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

// paddedStripe is a stripe with padding. It fills three cache lines, so the allocator places it at the start of a line.
// No other object lies in these lines.
type paddedStripe struct {
	_ [8]byte
	stripe
	_ [8]byte
}

// lock locks mu. If another goroutine holds mu, lock waits and notes the contention.
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

// unlock unlocks mu. If goroutines often found mu locked, unlock also rebalances the statistic.
func (st *stripe) unlock() {
	often := st.needsRebalance
	st.mu.Unlock()
	if often {
		st.owner.rebalance(st)
	}
}
