package node

import (
	"runtime"
	"unsafe"
)

// stripeSet holds the stripes of a contended statistic, except for the first stripe. It also holds the seed of the hash
// that distributes goroutines over these stripes. A set is never changed, only replaced.
//
// While a statistic has a set and no counters, new calls do not enter through the first stripe, because the first
// stripe shares cache lines with fields that every writer reads. A call exits through the stripe through which it
// entered, so earlier calls may still exit through the first stripe.
//
// Every call reads the set. The struct fills three cache lines, so the allocator places it at the start of a line, and
// no other object lies in these three lines. If another object shared a line with the set, each write to that object
// would remove the line from the caches of other processors.
type stripeSet struct {
	mask  uint64 // number of stripes minus one; the number is a power of two
	seed  uint64 // odd; another seed probably separates two goroutines that share a stripe
	tries int    // number of new seeds since stripes were last added; at most maxTries
	slots [stripeLimit]*stripe
	_     [40]byte
}

// list returns the stripes of the set. A nil set has no stripes.
func (m *stripeSet) list() []*stripe {
	if m == nil {
		return nil
	}
	return m.slots[:m.mask+1]
}

// A stripe counts how often goroutines find its lock taken. If this happens at least minContended times within one
// bucket, and in at least one in callsPerContended calls, the statistic is rebalanced: its set gets another seed, or
// the statistic gets more stripes.
//
// For comparison: if two processors do nothing but make calls through one stripe, every fifth call finds the lock
// taken. If only one call in a thousand finds it taken, the waiting costs less than more stripes would.
const (
	minContended      = 32
	callsPerContended = 256
	maxBackoff        = 10 // largest backoff of a stripe; its threshold is minContended << backoff
)

// maxTries is the number of new seeds that are tried before stripes are added. If two goroutines share one of two
// stripes, a new seed can separate them, and more stripes are unnecessary.
const maxTries = 2

// stripeLimit is the largest number of stripes in a set, even if the machine has more processors. Each stripe takes
// memory and makes turns slower, because a turn locks all stripes. On machines with many processors, more stripes would
// help little, because each goroutine does other work most of the time.
const stripeLimit = 16

// maxStripes returns the largest number of stripes in a set on this machine: twice the number of processors, rounded up
// to a power of two, and at most stripeLimit. Goroutines choose a stripe by a hash. With twice as many stripes as
// processors, two processors rarely choose the same stripe.
func maxStripes() int {
	n := 2
	for n < 2*runtime.GOMAXPROCS(0) && n < stripeLimit {
		n *= 2
	}
	return n
}

// pick returns a stripe for the calling goroutine. It hashes an address on the stack, because the stacks of two
// goroutines are at least 2 KiB apart. The choice of the stripe affects only the maximum in flight of the record. If
// all calls use one stripe, the record contains the exact maximum. Otherwise it contains a lower and an upper bound.
//
// While the statistic has counters, pick returns the first stripe, except during a turn. A limit on concurrency admits
// calls one by one, so several stripes would not help.
func (s *Statistic) pick() *stripe {
	more := s.extra.Load()
	if more == nil || s.first.hasCounters() {
		return &s.first
	}
	var here byte
	hash := uint64(uintptr(unsafe.Pointer(&here))>>11) * more.seed
	return more.slots[hash>>32&more.mask%stripeLimit]
}

// noteContention adds one to contended, the number of times that goroutines found mu locked. When contended reaches the
// threshold, noteContention decides whether at least one in callsPerContended calls found mu locked. If so, the
// statistic needs rebalancing. If not, contended restarts at 0. mu must be held.
func (st *stripe) noteContention() {
	st.contended++
	if st.contended < minContended<<st.backoff {
		return
	}
	if st.needsRebalance = st.exited-st.contendedFrom <= uint32(st.contended)*callsPerContended; !st.needsRebalance {
		st.resetContention()
	}
}

// resetContention sets st.contended to 0, notes the current number of exits in contendedFrom, and clears
// needsRebalance. st.mu must be held.
func (st *stripe) resetContention() {
	st.contended, st.needsRebalance, st.contendedFrom = 0, false, st.exited
}

// rebalance adds stripes or changes the seed. It does nothing if st.needsRebalance is no longer set. In this case
// another goroutine has rebalanced the statistic since the caller read needsRebalance, or the bucket has turned.
func (s *Statistic) rebalance(st *stripe) {
	st.mu.Lock()
	often := st.needsRebalance
	more := s.extra.Load()
	all := len(more.list()) >= maxStripes()
	if often {
		st.resetContention()
		if all && st.backoff < maxBackoff {
			st.backoff++ // stripes cannot be added, and a new seed may not help: double the threshold
		}
	}
	st.mu.Unlock()
	switch {
	case !often: // nothing to do
	case more == nil, !all && more.tries == maxTries:
		s.grow(more)
	default:
		next := *more
		next.seed, next.tries = nextSeed(more.seed), min(more.tries+1, maxTries)
		s.extra.CompareAndSwap(more, &next)
	}
}

// grow doubles the number of stripes in the set; the first set has two stripes. The parameter seen is the set that the
// caller has loaded. If another goroutine has replaced this set, or if the set would exceed maxStripes, grow does
// nothing. Old stripes keep their counts and their calls in flight. New stripes start empty, in the open bucket.
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
		st.owner, st.config, st.split = s, s.first.config, s.first.split
		st.end.Store(s.first.end.Load())
		st.length.Store(s.first.length.Load())
		st.mu.Lock() // the deferred unlockStripes unlocks it
		more.slots[i] = &st.stripe
	}
	s.extra.Store(more)
}

// firstSeed is 2^64 divided by the golden ratio, as in Fibonacci hashing.
const firstSeed = 0x9e3779b97f4a7c15

// nextSeed returns the next number of a linear congruential generator (Knuth's MMIX). It sets the lowest bit, because a
// seed must be odd.
func nextSeed(seed uint64) uint64 { return seed*6364136223846793005 + 1442695040888963407 | 1 }
