package node

import (
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// stripe is the part of a statistic that one processor at a time records into: the bucket that is open, what is in
// flight through this stripe, and the histogram. Everything in it is guarded by mu, and nothing is atomic: ten
// additions under a lock cost what one atomic addition costs.
type stripe struct {
	mu   sync.Mutex
	end  time.Duration // reading at which the open bucket ends; the same in all stripes of a statistic
	open Counts        // of the open bucket

	inFlight int64
	most     int64 // highest inFlight of the open second
	waits    int   // how often a goroutine found the lock taken

	owner *Statistic
	rt    pages // since the statistic began

	_ [64]byte // a stripe's writers share no cache line with the next one's
}

// A statistic starts with one stripe and gets more when goroutines have met at a lock this often.
const growAfter = 32

// maxStripes is how many stripes a statistic may have: the power of two from the number of processors up.
func maxStripes() int {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < 64 {
		n *= 2
	}
	return n * 2
}

// pick chooses a stripe for the calling goroutine. Goroutines are told apart by their stacks, which are at least 2
// KiB from each other; which stripe an event lands in does not matter for any result.
func (s *Statistic) pick() *stripe {
	more := s.more.Load()
	if more == nil {
		return &s.first
	}
	var here byte
	hash := uint64(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b97f4a7c15
	return (*more)[hash>>32&uint64(len(*more)-1)]
}

// enter picks a stripe, locks it, and makes sure that its open bucket is not over at the reading now. A reading
// from before the open bucket counts into that one: what is sealed stays so.
func (s *Statistic) enter(now time.Duration) *stripe {
	st := s.pick()
	if !st.mu.TryLock() {
		st = s.contended(st)
	}
	if now >= st.end {
		st.turn(now)
	}
	return st
}

// turn moves the whole statistic to the reading now, and returns with st locked again.
func (st *stripe) turn(now time.Duration) {
	st.mu.Unlock()
	st.owner.turn(now)
	st.mu.Lock()
}

// contended waits for the lock of st, or of another stripe once there are enough of them.
func (s *Statistic) contended(st *stripe) *stripe {
	st.mu.Lock()
	st.waits++
	if st.waits < growAfter {
		return st
	}
	st.waits = 0
	st.mu.Unlock()
	s.grow()
	st = s.pick()
	st.mu.Lock()
	return st
}

// grow doubles the stripes. Old stripes stay, with what they hold and whoever is in flight through them.
func (s *Statistic) grow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.lockStripes()
	defer unlockStripes(all)
	if len(all) >= maxStripes() {
		return
	}
	more := make([]*stripe, 2*len(all))
	copy(more, all)
	for i := len(all); i < len(more); i++ {
		more[i] = &stripe{owner: s, end: s.first.end}
	}
	s.more.Store(&more)
}

// lockStripes locks all stripes, in order. While they are held nothing is recorded, no bucket turns and no stripe
// is added.
func (s *Statistic) lockStripes() []*stripe {
	s.first.mu.Lock()
	more := s.more.Load()
	if more == nil {
		return s.alone[:]
	}
	for _, st := range (*more)[1:] {
		st.mu.Lock()
	}
	return *more
}

func unlockStripes(all []*stripe) {
	for _, st := range all {
		st.mu.Unlock()
	}
}
