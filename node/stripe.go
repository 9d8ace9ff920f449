package node

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/windowstat/windowstat/leap"
)

// stripe is the part of a statistic that one processor at a time records into: the open bucket, the calls in flight that
// entered here, and the response times of the open second.
//
// A call that enters is one atomic addition, to entered, also of its stamp; everything else is plain memory behind mu, because ten
// additions under a lock cost what one atomic addition costs. The holder of mu cuts the entered calls by reading
// entered once: those up to there belong to the bucket that is over, later ones to the next, whenever they read
// their clock. Between two exits the calls in flight only grow, so their highest number is seen by looking before each
// exit and at each cut.
//
// The order of the fields is that of use. A call touches two cache lines here, what stands before open and open, and
// one of a page; for a resource that is not in the cache, that is what it costs.
type stripe struct {
	mu       sync.Mutex
	end      atomic.Int64 // when the open bucket ends, see mark; the same in all stripes; changes under mu
	shape    *Shape
	page   *page[uint16] // the page of rt that was counted into last
	entered  atomic.Uint64 // calls that entered, and when: see entry
	exited   uint32        // calls that left again; wraps
	maxInFlight     int32         // most calls in flight in the open second, seen so far
	length   atomic.Int32  // of the open bucket, in nanoseconds; changes as end does
	pageNo int16         // number of the recent page
	needsRebalance    bool          // goroutines have met here often: the stripes are to be rebalanced

	open tally

	enteredAtStart     uint64        // entered at the last cut, where the open bucket began
	inFlightAtStart int32         // calls in flight then
	reported  uint32        // calls in flight that the counters know of
	lateEntry     time.Duration // by how much calls of the open second entered before their bucket began, see surely
	contended      uint16        // how often goroutines found the lock taken, in the open bucket and since the last rebalance
	backoff     uint8         // how often the meetings have doubled that it takes
	contendedFrom    uint32        // exited when the first of them was counted
	rtExcess    time.Duration // by how much response times are more than what calls spent, of all time; wraps
	completions       *completions        // nil until a call ends
	owner    *Statistic
}

// counts is what the open bucket holds, with entered as it was read. Holds mu.
func (st *stripe) counts(entered uint64) Counts {
	o := &st.open
	return Counts{
		Pass: saturate(o.Pass, callsIn(entered-st.enteredAtStart)), Block: o.Block, Complete: o.Complete, Exception: o.Exception,
		RTSum: o.RTSum, RTMin: o.RTMin, RTMax: o.RTMax,
	}
}

// cut ends the open bucket, at the reading end, and returns what it holds, and what its calls spent in it. Holds mu.
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

// paddedStripe is a stripe with padding around it: its writers share no cache line with another stripe's. It is as long as three
// lines, so that the allocator puts it at the start of one, and the two that matter begin where lines do.
type paddedStripe struct {
	_ [8]byte
	stripe
	_ [8]byte
}

// turn moves the whole statistic to the reading now, and returns with st locked again.
func (st *stripe) turn(now leap.Reading) {
	st.mu.Unlock()
	st.owner.Seal(now)
	st.mu.Lock()
}

// lock takes the lock, and notes if it had to wait.
func (st *stripe) lock() {
	if !st.mu.TryLock() {
		st.lockContended()
	}
}

// wait takes the lock that another goroutine has.
func (st *stripe) lockContended() {
	st.mu.Lock()
	st.noteContention()
}

// unlock releases the lock. If goroutines have met here often it rebalances: there are more stripes then, or goroutines are
// spread over them in another way.
func (st *stripe) unlock() {
	often := st.needsRebalance
	st.mu.Unlock()
	if often {
		st.owner.rebalance(st)
	}
}

// stripes iterates over all stripes, in the order in which they are locked. The list grows under mu and the locks of
// all stripes; a goroutine that holds mu or the first stripe's lock may use it.
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

// lockStripes locks all stripes. While they are held nothing is recorded but calls that enter, no bucket turns and no
// stripe is added.
func (s *Statistic) lockStripes() {
	for st := range s.stripes {
		st.mu.Lock()
	}
}

// unlockStripes unlocks what lockStripes locked: the first last, because it keeps the list as it is.
func (s *Statistic) unlockStripes() {
	for _, st := range s.extra.Load().list() {
		st.mu.Unlock()
	}
	s.first.mu.Unlock()
}

// stripeSet is the stripes that a contended statistic has besides its first, and how goroutines are spread over them. It
// is never changed, only replaced. The first stripe is not picked any more, because it shares its cache lines with
// what every writer reads; calls that entered by it still leave by it.
//
// Every call reads it. It fills three cache lines, so that the allocator puts it at the start of one and nothing else there:
// beside something that a goroutine writes to, each call of all others would miss the cache.
type stripeSet struct {
	mask  uint64 // how many stripes there are, less one; that is a power of two
	seed  uint64 // odd; goroutines that meet under one seed are apart under most others
	tries int    // how many other seeds these stripes had
	slots [stripeLimit]*stripe
	_     [40]byte
}

// list is the stripes; a nil set has none.
func (m *stripeSet) list() []*stripe {
	if m == nil {
		return nil
	}
	return m.slots[:m.mask+1]
}

// The stripes are rebalanced when, in one bucket, goroutines have met at one of them so often, and in one of so many calls.
// Two processors that do nothing but share a stripe meet in every fifth call. Where one call in a thousand waits, that costs
// less than stripes would.
const (
	minContended = 32
	callsPerContended = 256
	maxBackoff      = 10 // how often the number of meetings may double
)

// maxTries is how many other seeds are tried before there are more stripes: two goroutines that share one of two stripes need
// no more of them, but another seed.
const maxTries = 2

// mostStripes is how many stripes a statistic may have however many processors there are: a turn locks them all, and each takes
// memory, and on so many processors each does something else most of the time.
const stripeLimit = 16

// maxStripes is how many stripes a statistic may have: twice the power of two from the number of processors up, because
// goroutines choose by hashing and two processors should rarely meet.
func maxStripes() int {
	n := 2
	for n < 2*runtime.GOMAXPROCS(0) && n < stripeLimit {
		n *= 2
	}
	return n
}

// pick chooses a stripe for the calling goroutine. Goroutines are distinguished by their stacks, which are at least 2
// KiB from each other; which stripe an event lands in matters for the most in flight only. That is exact while all use one, and
// so they do where a limit on concurrency, which makes calls enter one by one anyway, has counters.
func (s *Statistic) pick() *stripe {
	more := s.extra.Load()
	if more == nil || s.first.hasCounters() {
		return &s.first
	}
	var here byte
	hash := uint64(uintptr(unsafe.Pointer(&here))>>11) * more.seed
	return more.slots[hash>>32&more.mask%stripeLimit]
}

// meet notes that goroutines met here. Holds mu.
func (st *stripe) noteContention() {
	st.contended++
	if st.contended < minContended<<st.backoff {
		return
	}
	if st.needsRebalance = st.exited-st.contendedFrom <= uint32(st.contended)*callsPerContended; !st.needsRebalance {
		st.resetContention()
	}
}

// forget forgets the meetings. Holds mu.
func (st *stripe) resetContention() { st.contended, st.needsRebalance, st.contendedFrom = 0, false, st.exited }

// rebalance adds stripes, or changes the seed, for a stripe at which goroutines meet.
func (s *Statistic) rebalance(st *stripe) {
	st.mu.Lock()
	often := st.needsRebalance
	more := s.extra.Load()
	all := len(more.list()) >= maxStripes()
	if often {
		st.resetContention()
		if all && st.backoff < maxBackoff {
			st.backoff++ // if there are more goroutines than stripes no seed helps
		}
	}
	st.mu.Unlock()
	switch {
	case !often: // another goroutine was here first
	case more == nil, !all && more.tries == maxTries:
		s.grow(more)
	default:
		next := *more
		next.seed, next.tries = nextSeed(more.seed), min(more.tries+1, maxTries)
		s.extra.CompareAndSwap(more, &next)
	}
}

// grow doubles the stripes, from one to two at first, unless they have changed since they were seen. Old stripes stay, with
// their counts and their calls in flight; new ones begin in the open bucket.
func (s *Statistic) grow(seen *stripeSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockStripes()
	defer s.unlockStripes()
	old := s.extra.Load().list()
	n := max(2*len(old), 2)
	if s.extra.Load() != seen || n > maxStripes() {
		return
	}
	more := &stripeSet{mask: uint64(n - 1), seed: firstSeed}
	for i := copy(more.slots[:], old); i < n; i++ {
		st := new(paddedStripe)
		st.owner, st.shape = s, s.first.shape
		st.end.Store(s.first.end.Load())
		st.length.Store(s.first.length.Load())
		st.mu.Lock() // unlocked with the others
		more.slots[i] = &st.stripe
	}
	s.extra.Store(more)
}

const firstSeed = 0x9e3779b97f4a7c15

// nextSeed is a step of a linear congruential generator (Knuth's MMIX), made odd.
func nextSeed(seed uint64) uint64 { return seed*6364136223846793005 + 1442695040888963407 | 1 }
