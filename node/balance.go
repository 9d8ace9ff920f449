package node

import (
	"runtime"
	"unsafe"
)

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
	room  [mostStripes]*stripe
	_     [40]byte
}

// list is the stripes; a nil set has none.
func (m *stripeSet) list() []*stripe {
	if m == nil {
		return nil
	}
	return m.room[:m.mask+1]
}

// The stripes are rebalanced when, in one bucket, goroutines have met at one of them so often, and in one of so many calls.
// Two processors that do nothing but share a stripe meet in every fifth call. Where one call in a thousand waits, that costs
// less than stripes would.
const (
	minMeetings = 32
	callsToMeet = 256
	rarest      = 10 // how often the number of meetings may double
)

// maxTries is how many other seeds are tried before there are more stripes: two goroutines that share one of two stripes need
// no more of them, but another seed.
const maxTries = 2

// mostStripes is how many stripes a statistic may have however many processors there are: a turn locks them all, and each takes
// memory, and on so many processors each does something else most of the time.
const mostStripes = 16

// maxStripes is how many stripes a statistic may have: twice the power of two from the number of processors up, because
// goroutines choose by hashing and two processors should rarely meet.
func maxStripes() int {
	n := 2
	for n < 2*runtime.GOMAXPROCS(0) && n < mostStripes {
		n *= 2
	}
	return n
}

// pick chooses a stripe for the calling goroutine. Goroutines are told apart by their stacks, which are at least 2
// KiB from each other; which stripe an event lands in matters for the most in flight only. That is exact while all use one, and
// so they do where a limit on concurrency, which makes calls enter one by one anyway, has counters told.
func (s *Statistic) pick() *stripe {
	more := s.more.Load()
	if more == nil || s.first.tells() {
		return &s.first
	}
	var here byte
	hash := uint64(uintptr(unsafe.Pointer(&here))>>11) * more.seed
	return more.room[hash>>32&more.mask%mostStripes]
}

// meet notes that goroutines met here. Holds mu.
func (st *stripe) meet() {
	st.met++
	if st.met < minMeetings<<st.rare {
		return
	}
	if st.often = st.exited-st.since <= uint32(st.met)*callsToMeet; !st.often {
		st.forget()
	}
}

// forget forgets the meetings. Holds mu.
func (st *stripe) forget() { st.met, st.often, st.since = 0, false, st.exited }

// rebalance adds stripes, or changes the seed, for a stripe at which goroutines meet.
func (s *Statistic) rebalance(st *stripe) {
	st.mu.Lock()
	often := st.often
	more := s.more.Load()
	all := len(more.list()) >= maxStripes()
	if often {
		st.forget()
		if all && st.rare < rarest {
			st.rare++ // if there are more goroutines than stripes no seed helps
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
		s.more.CompareAndSwap(more, &next)
	}
}

// grow doubles the stripes, from one to two at first, unless they have changed since they were seen. Old stripes stay, with
// their counts and their calls in flight; new ones begin in the open bucket.
func (s *Statistic) grow(seen *stripeSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockStripes()
	defer s.unlockStripes()
	old := s.more.Load().list()
	n := max(2*len(old), 2)
	if s.more.Load() != seen || n > maxStripes() {
		return
	}
	more := &stripeSet{mask: uint64(n - 1), seed: firstSeed}
	for i := copy(more.room[:], old); i < n; i++ {
		st := new(paddedStripe)
		st.init(s, s.first.shape)
		st.end.Store(s.first.end.Load())
		st.length.Store(s.first.length.Load())
		st.mu.Lock() // unlocked with the others
		more.room[i] = &st.stripe
	}
	s.more.Store(more)
}

const firstSeed = 0x9e3779b97f4a7c15

// nextSeed is a step of a linear congruential generator (Knuth's MMIX), made odd.
func nextSeed(seed uint64) uint64 { return seed*6364136223846793005 + 1442695040888963407 | 1 }
