package node

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Statistic is Sentinel's StatisticNode: it counts the calls that one origin makes to one resource through one
// entrance. The package comment describes its terms, its protocol, the lock order and the costs.
//
// Create a Statistic with [New] or [Statistic.Init], and do not copy it. All methods are safe for concurrent use.
//
// The fields that every call uses come first. On 64-bit platforms, a Statistic fills four cache lines. The first cache
// line holds the pointer to the other stripes and line 1 of the first stripe; see stripe for these lines. The second
// cache line holds line 2 of the first stripe, which is its tally.
type Statistic struct {
	extra atomic.Pointer[stripeSet] // all stripes after the first one; nil until stripes are added
	first stripe

	since int64 // index of the second in which the statistic began

	mu      sync.Mutex    // a change of the fields below needs mu and all stripe locks; see the package comment
	second  int64         // index of the open second
	start   time.Duration // start of the open bucket, in line time
	end     leap.Reading  // end of the open bucket; math.MaxInt64 once s is retired
	history *history      // emptyHistory until ensureHistory replaces it

	inFlightAtStart int32  // calls in flight when the open second began
	borrowers       uint32 // calls that wait for a later bucket, see Loan

	inFlightTime time.Duration    // call-seconds of the open second, without the open bucket
	counters     *[]*atomic.Int64 // the counters of the statistic, or nil without counters; see SetCounters
}

// history holds the past of a Statistic: totals, the window of buckets, and the records of sealed seconds.
type history struct {
	total        Counts             // counts of all buckets before the open bucket
	inFlightTime callTime           // call-seconds of all seconds before the open second
	rtSum        time.Duration      // like total.RTSum, but wraps at the largest int64; see inFlightAge
	window       leap.Array[Counts] // past buckets
	windowPasses int64              // passes in the second window, without the open bucket
	occupied     int64              // OccupiedPass of the open bucket
	rt           cells[uint32]      // response times of all seconds before the open second
	loans        []loan             // one for each later bucket from which calls have borrowed, ascending

	peak          peak    // cached highest slide of the minute window
	activeDropped int64   // last active second with a dropped record; math.MinInt64 without one
	seconds       records // records of sealed seconds
	histograms    records // histograms of sealed seconds with completions; dropped earlier than the records
}

// emptyHistory is the empty history that all new statistics share. No code writes to it: before the first write,
// ensureHistory replaces it with a private copy. Readers treat it like any other history.
var emptyHistory = &history{
	peak:          peak{firstSecond: math.MinInt64, second: math.MaxInt64},
	activeDropped: math.MinInt64, seconds: noRecords(), histograms: noRecords(),
}

// New returns a statistic that begins in the second of the reading now.
func New(config *Config, now leap.Reading) *Statistic {
	s := new(Statistic)
	s.Init(config, now)
	return s
}

// Init initializes s, a zero Statistic that is part of another struct. s should begin at the start of a cache line: the
// fields that every call uses then share two lines. The first second of s is the second of the reading now.
func (s *Statistic) Init(config *Config, now leap.Reading) {
	s.first.owner, s.first.config, s.history = s, config, emptyHistory
	now = min(now, config.line.Now())
	second := config.line.At(now)
	s.since = second.Index
	s.openBucket(second, now)
}

// ensureHistory returns the history of s for writing. If s still has emptyHistory, ensureHistory first replaces it with
// a private copy. A history takes most of the memory of a statistic, and a statistic that counts nothing needs none. mu
// and all stripe locks must be held.
func (s *Statistic) ensureHistory() *history {
	if s.history == emptyHistory {
		r := *emptyHistory
		r.window = s.first.config.second
		s.history = &r
	}
	return s.history
}

// stripes iterates over all stripes in locking order. The list of stripes grows only while mu and all stripe locks are
// held. The caller must hold mu, or lock the first stripe before it continues with the next stripe. No lock is needed
// if s is retired: the list may still grow, but the new stripes stay empty.
func (s *Statistic) stripes(yield func(*stripe) bool) {
	if !yield(&s.first) {
		return
	}
	for _, st := range s.extra.Load().list() {
		if !yield(st) {
			return
		}
	}
}

// lockStripes locks all stripes. While they are locked, other goroutines cannot turn s, add a stripe or record an
// event. There is one exception: a call may enter without a lock.
func (s *Statistic) lockStripes() {
	for st := range s.stripes {
		st.mu.Lock()
	}
}

// unlockStripes unlocks all stripes. It unlocks the first stripe last, because the lock of the first stripe protects
// the list of stripes.
func (s *Statistic) unlockStripes() {
	for _, st := range s.extra.Load().list() {
		st.mu.Unlock()
	}
	s.first.mu.Unlock()
}

// lockAllAt locks mu, turns s to the reading now, and locks all stripes. A reader of sealed seconds needs mu, because
// each lookup in a store of records changes the fields found and foundSecond of the store. A reader of the open bucket
// needs the locks of the stripes.
func (s *Statistic) lockAllAt(now leap.Reading) {
	s.mu.Lock()
	s.advance(now)
	s.lockStripes()
}

// unlockAll releases all locks that lockAllAt has locked.
func (s *Statistic) unlockAll() {
	s.unlockStripes()
	s.mu.Unlock()
}

// openCounts returns the counts of the open bucket and the calls in flight, both summed over all stripes. All stripe
// locks must be held.
func (s *Statistic) openCounts() (sum Counts, inFlight int64) {
	for st := range s.stripes {
		if st.end.Load() == closedMark {
			continue // s is retired: reconcileEnter takes back the calls that still enter
		}
		entered := st.entered.Load()
		c := st.counts(entered)
		sum.add(&c)
		inFlight += int64(st.inFlightAt(entered))
	}
	sum.OccupiedPass = s.history.occupied
	return sum, inFlight
}

// inFlight returns the number of calls in flight.
func (s *Statistic) inFlight() int64 {
	s.lockStripes()
	defer s.unlockStripes()
	_, inFlight := s.openCounts()
	return inFlight
}
