package node

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Statistic counts the calls of one resource: Sentinel's StatisticNode.
//
// Protocol. The bucket that is open is spread over stripes, each behind its own lock. A writer takes the lock of one
// stripe, adds, and releases it. Everything that concerns all stripes is done by whoever comes first, under the
// locks of all of them: when a bucket is over, its counts are moved from the stripes into the ring of the second
// window, and when a second is over, it is sealed into the ring of the minute. So all stripes are always in the same
// bucket, and a count is either in an open stripe or in the rings, never in both or neither. Whoever reads the clock
// before a boundary and records after somebody has crossed it counts into the bucket that is open then.
//
// Locks are taken in the order mu, first stripe, other stripes, timeline. A writer holds one stripe's lock and
// nothing else; one that finds its bucket over releases it before it takes mu to turn. What mu guards changes under
// mu and all stripes' locks together, so either is enough to read it: readers of sealed seconds take mu and keep no
// writer waiting, readers of the open bucket take the stripes' locks and see one moment.
//
// Cost. Recording takes one lock that is almost never contended: a statistic begins with one stripe and gets more, up
// to twice the processors, when goroutines meet at it. A reading of a window takes all stripes' locks for the time of
// a short sum. Turning costs some hundred nanoseconds for each second in which something happened, and nothing for
// idle ones; statistics turn when somebody records or reads, not by themselves. Memory: some 200 bytes until
// something is counted.
//
// Limitation: the goroutine that turns a bucket does it for all, twice a second by default; if the machine takes its
// processor away in that moment, writers of this resource wait for it. Which of several stripes' in-flight maxima
// coincided is not known, see [MetricNode].
//
// A Statistic must be made with [New] and not be copied. It is safe for concurrent use.
type Statistic struct {
	more  atomic.Pointer[spread] // the other stripes; nil while there is one
	first stripe

	line  *leap.Timeline
	shape *Shape
	since int64 // index of the second in which the statistic began

	mu    sync.Mutex    // with all stripes' locks, guards what follows
	index int64         // of the second that is open
	at    time.Duration // line time at which the open bucket starts
	end   time.Duration // reading at which it ends
	began int64         // what was in flight when the open second began
	rings *rings        // nil while nothing was counted before the open bucket

	_ [48]byte // fills four cache lines, see apart
}

// rings is what a statistic remembers.
type rings struct {
	total  Counts // of all buckets before the open one
	window leap.Array[Counts]
	minute leap.Array[packed]
	store  store
	rt     cells // of all seconds before the open one
}

// New makes a statistic that begins in the second of the reading now.
func New(line *leap.Timeline, shape *Shape, now time.Duration) *Statistic {
	s := &Statistic{line: line, shape: shape}
	s.first.owner = s
	second := line.At(now)
	s.since = second.Index
	s.open(second, now)
	return s
}

// Call is a call in flight, from [Statistic.Enter] to Exit. It leaves through the stripe it entered by, so that what
// is in flight is never negative. A Call must not be copied; its zero value is no call, and ending it does nothing.
type Call struct {
	_       noCopy
	st      *stripe
	entered time.Duration
	n       int64
	ended   bool // guarded by the stripe's lock
}

// noCopy makes go vet complain about copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Enter counts a call that was admitted at the reading now, as n passes and one in flight. An n below 1 counts as 1.
func (s *Statistic) Enter(now time.Duration, n int64) Call {
	n = max(n, 1)
	st := s.enter(now)
	st.open.Pass = saturate(st.open.Pass, n)
	st.inFlight++
	if st.inFlight > st.most {
		st.most = st.inFlight
	}
	st.mu.Unlock()
	return Call{st: st, entered: now, n: n}
}

// Entered is the reading at which the call entered.
func (c *Call) Entered() time.Duration { return c.entered }

// Exit counts the end of the call at the reading now: completion, response time, exception if failed, and one less
// in flight, as one change. Only the first Exit of a Call counts; it may come from any goroutine. An end before the
// beginning is a response time of 0.
func (c *Call) Exit(now time.Duration, failed bool) {
	st := c.st
	if st == nil {
		return
	}
	rt := max(now-c.entered, 0)
	cell := st.owner.shape.layout.cell(rt)
	if !st.mu.TryLock() {
		st.mu.Lock()
		st.waits++
	}
	if c.ended {
		st.mu.Unlock()
		return
	}
	c.ended = true
	if now >= st.end {
		st.turn(now)
	}
	st.open.complete(rt, c.n, failed)
	st.count(cell, c.n)
	st.inFlight--
	st.mu.Unlock()
}

// Block counts a call that was refused at the reading now, as n blocks. An n below 1 counts as 1.
func (s *Statistic) Block(now time.Duration, n int64) {
	st := s.enter(now)
	st.open.Block = saturate(st.open.Block, max(n, 1))
	st.mu.Unlock()
}
