package node

import (
	"runtime"
	"unsafe"
)

// stripeSet holds the stripes of a contended statistic except its first one. It also holds the seed of the hash that
// distributes goroutines over these stripes. A set is never changed, only replaced. While a statistic has a set and no
// counters, new calls do not use the first stripe, because it shares cache lines with fields that every writer reads. A
// call that entered by the first stripe also leaves by it.
//
// Every call reads the set. The struct fills three cache lines, so the allocator places it at the start of a line and
// puts nothing else there. In a line with memory to which other goroutines write, reading it would often miss the
// cache.
type stripeSet struct {
	mask  uint64 // number of stripes minus one; the number is a power of two
	seed  uint64 // odd; two goroutines that share a stripe probably get different ones with another seed
	tries int    // number of earlier seeds of these stripes, at most maxTries
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

// A stripe counts how often goroutines find its lock taken. The stripes are rebalanced (get another seed, or more
// stripes) if this happens at least minContended times within one bucket, and in more than one of callsPerContended
// calls. Two processors that do nothing but share a stripe find it locked in every fifth call. If one call in a
// thousand waits, waiting costs less than more stripes would.
const (
	minContended      = 32
	callsPerContended = 256
	maxBackoff        = 10 // largest number of times that minContended is doubled
)

// maxTries is the number of new seeds that are tried before stripes are added. If two goroutines share one of two
// stripes, they need another seed and not more stripes.
const maxTries = 2

// stripeLimit is the largest number of stripes of a statistic, however many processors there are. More stripes have
// costs: a turn locks all stripes, and each stripe takes memory. They have little use, because on many processors each
// goroutine does other work most of the time.
const stripeLimit = 16

// maxStripes returns the largest number of stripes on this machine: twice the number of processors, rounded up to a
// power of two, and at most stripeLimit. Goroutines choose a stripe by a hash. With twice as many stripes as
// processors, two processors rarely choose the same one.
func maxStripes() int {
	n := 2
	for n < 2*runtime.GOMAXPROCS(0) && n < stripeLimit {
		n *= 2
	}
	return n
}

// pick returns a stripe for the calling goroutine. It hashes an address on the stack, because the stacks of two
// goroutines are at least 2 KiB apart. With a single stripe the maximum in flight is exact; with several it is a lower
// bound. No other number depends on the choice. With counters, pick returns the first stripe except during a turn: a
// limit on concurrency admits calls one by one anyway, so several stripes would not help.
func (s *Statistic) pick() *stripe {
	more := s.extra.Load()
	if more == nil || s.first.hasCounters() {
		return &s.first
	}
	var here byte
	hash := uint64(uintptr(unsafe.Pointer(&here))>>11) * more.seed
	return more.slots[hash>>32&more.mask%stripeLimit]
}

// noteContention counts that a goroutine found mu locked. When the count reaches the threshold, noteContention decides
// whether the stripes need rebalancing. If they do not, the count starts from 0 again. mu must be held.
func (st *stripe) noteContention() {
	st.contended++
	if st.contended < minContended<<st.backoff {
		return
	}
	if st.needsRebalance = st.exited-st.contendedFrom <= uint32(st.contended)*callsPerContended; !st.needsRebalance {
		st.resetContention()
	}
}

// resetContention sets the count of contention to 0. mu must be held.
func (st *stripe) resetContention() {
	st.contended, st.needsRebalance, st.contendedFrom = 0, false, st.exited
}

// rebalance adds stripes or changes the seed, unless another goroutine has already done so for the contention of st.
func (s *Statistic) rebalance(st *stripe) {
	st.mu.Lock()
	often := st.needsRebalance
	more := s.extra.Load()
	all := len(more.list()) >= maxStripes()
	if often {
		st.resetContention()
		if all && st.backoff < maxBackoff {
			st.backoff++ // seeds do not help if there are more goroutines than stripes
		}
	}
	st.mu.Unlock()
	switch {
	case !often: // another goroutine has rebalanced
	case more == nil, !all && more.tries == maxTries:
		s.grow(more)
	default:
		next := *more
		next.seed, next.tries = nextSeed(more.seed), min(more.tries+1, maxTries)
		s.extra.CompareAndSwap(more, &next)
	}
}

// grow doubles the number of stripes in the set; the first set has two. It does nothing if another goroutine has
// replaced the set that the caller has seen. Old stripes keep their counts and their calls in flight. New stripes begin
// in the open bucket.
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
		st.owner, st.config = s, s.first.config
		st.end.Store(s.first.end.Load())
		st.length.Store(s.first.length.Load())
		st.mu.Lock() // unlockStripes unlocks it
		more.slots[i] = &st.stripe
	}
	s.extra.Store(more)
}

// firstSeed is 2^64 divided by the golden ratio, as in Fibonacci hashing.
const firstSeed = 0x9e3779b97f4a7c15

// nextSeed returns the next number of a linear congruential generator (Knuth's MMIX), made odd.
func nextSeed(seed uint64) uint64 { return seed*6364136223846793005 + 1442695040888963407 | 1 }
