package node

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Statistic counts the calls of one resource: Sentinel's StatisticNode.
//
// Protocol. The bucket that is open is spread over stripes, each behind its own lock. A writer takes the lock of one
// stripe, adds, and releases it; one that only lets a call in adds one to a counter of the stripe without the lock.
// The first goroutine after a boundary turns the statistic, under the locks of all stripes: it moves the counts of a bucket
// that is over from the stripes into the ring of the second window, and seals a second that is over into the records of
// the minute. So all stripes are always in the same bucket, and a count is either in an open stripe or in the rings, never in
// both or neither. A writer that reads the clock before a boundary and records after another goroutine has crossed it
// counts into the bucket that is open then.
//
// Call-seconds. Beside counts a statistic keeps what its calls spend, the integral of what is in flight. A call spends from
// the stamp it enters with to the one it leaves with, exactly, whatever turns in between, so Little's law holds: over all
// seconds calls spend their response times. A stamp from before the open bucket adds what was spent since, or takes back what
// was not, in the open second, because sealed seconds do not change; a second that would be less than nothing by that has none,
// and the next ones have that less. Between entry and exit a call is rounded by up to 4.1 µs. Seconds that the statistic passed
// over count as whole ones; what they were slewed by goes to the second after them, also for calls that were borrowed there and
// are off by that. See [tally].
//
// The most in flight. While there is one stripe it is exact: between two exits the calls in flight only grow, so they are
// counted before each exit. The maxima of several stripes were at different moments; then it is what was surely so, see
// [surely]. Where there are counters, calls enter by the first stripe only.
//
// Locks are taken in the order mu, first stripe, other stripes, timeline. A writer holds one stripe's lock and
// nothing else; one that finds its bucket over releases it before it takes mu to turn. What mu guards changes under
// mu and all stripes' locks together, so either is enough to read it, but for records: a search notes where it ended under mu
// alone. Readers of sealed seconds take mu and keep no writer waiting, readers of the open bucket take all locks.
//
// Consistency. A sealed second is exact and never changes. A reading of the open bucket has every completion as a
// whole, and of each stripe the passes and the calls in flight as of one moment. Calls that enter through different
// stripes while it is taken may be seen in another order than they came.
//
// Cost. A call costs one atomic addition to enter and one lock, almost never contended, to leave: a statistic begins
// with one stripe and gets more, up to twice the processors and sixteen, when goroutines meet at it in more than one of some
// hundred calls. A reading of a window takes all stripes' locks for the time of a short sum. Turning costs less than a microsecond for each
// second in which something happened, two or three with all stripes, more with many buckets, and nothing for idle ones. A
// statistic turns when it is written or read, not by itself. Memory: some 300 bytes until something is counted; each stripe
// takes 192, and what the response times of one second take.
//
// Marks. A writer that enters without a lock reads the end of the open bucket before it adds, and once more afterwards. Who turns
// the bucket, retires the statistic or gives it counters changes the end first, and then looks at what has entered. So one of
// them sees the other: a writer that finds another end takes the lock, and finishes there.
//
// Retirement. An idle statistic can be retired, see [Statistic.Retire]. A later writer gets no call, and must go elsewhere.
//
// Counters. A statistic can keep counters of the calls in flight up to date, so that nobody has to read many statistics, see
// [Statistic.SetCounters]. That costs nothing where there are none.
//
// Codes. How calls were answered is counted under the lock of the stripe that they leave by, with their completion: a
// reader of both under all stripes' locks sees each completion under its code. Stripes keep what they counted, also when the
// statistic is retired, so nothing is moved when a bucket turns. A call without a code pays a comparison.
//
// Limitation: the goroutine that turns a bucket does it for all, twice a second by default; if the machine takes its
// processor away in that moment, writers of this resource wait for it. What several stripes, or leaves, had in flight at once is
// known from below only; and if a goroutine loses its processor twice within Enter, for a second each time, the average that is
// part of it may be above the truth. Up to 67 million calls can be in flight, or enter in one bucket, at one stripe, and what a
// stripe's calls spend in a bucket must differ by less than six days from what those in flight at its start do.
//
// A Statistic must be made with [New] or [Statistic.Init], and not be copied. It is safe for concurrent use.
type Statistic struct {
	extra  atomic.Pointer[stripeSet] // the other stripes; nil while there is one
	first stripe

	since int64 // index of the second in which the statistic began

	mu    sync.Mutex    // with all stripes' locks, guards what follows
	second int64         // of the second that is open
	start    time.Duration // line time at which the open bucket starts
	end   leap.Reading  // reading at which it ends, see retired; changes under all stripes' locks, too
	history *history        // noRings while nothing was counted before the open bucket

	inFlightAtStart     int32  // calls in flight when the open second began
	borrowers uint32 // calls that have borrowed from buckets to come; changes under all stripes' locks, too

	inFlightTime    time.Duration    // by the calls of the open second, before the open bucket
	counters *[]*atomic.Int64 // nil if there are none; changes as they do. Four cache lines end here, see paddedStripe
}

// rings is what a statistic remembers.
type history struct {
	total    Counts        // of all buckets before the open one
	inFlightTime    callTime      // of all seconds before the open one
	rtSum     time.Duration // the response times in total; wraps
	window   leap.Array[Counts]
	windowPasses   int64         // in the second window, before the open bucket
	occupied int64         // OccupiedPass of the open bucket
	rt       cells[uint32] // of all seconds before the open one
	loans    []loan        // passes borrowed from buckets to come, ascending

	peak       peak    // of the minute window
	activeDropped     int64   // the last second in which something happened of those whose records were dropped
	seconds    records // of sealed seconds
	histograms records // of those of them that have completions, for a shorter time
}

// noRings is what every statistic remembers at first: nothing. All share it, so it is never written to: what records first makes
// rings of its own, see remember. Readers need not know; to them it is a past in which nothing happened.
var emptyHistory = &history{
	peak: peak{from: math.MinInt64, second: math.MaxInt64}, activeDropped: math.MinInt64, seconds: noRecords(), histograms: noRecords(),
}

// New makes a statistic that begins in the second of the reading now.
func New(shape *Shape, now leap.Reading) *Statistic {
	s := new(Statistic)
	s.Init(shape, now)
	return s
}

// Init makes a zero statistic that is part of something else what [New] makes. It should begin a cache line.
func (s *Statistic) Init(shape *Shape, now leap.Reading) {
	s.first.owner, s.first.shape, s.history = s, shape, emptyHistory
	now = min(now, shape.line.Now())
	second := shape.line.At(now)
	s.since = second.Index
	s.openBucket(second, now)
}

// Call is a call in flight, from [Statistic.Enter] to Exit. It leaves through the stripe it entered by, so that what
// is in flight is never negative. A Call must not be copied; its zero value is no call, and ending it does nothing.
type Call struct {
	_       noCopy
	st      *stripe
	entered leap.Reading
	batch   batch
}

// batch is how many calls one stands for, and its owner's note. Go keeps a struct in registers only if it has no more than four fields and four words: a Call
// and a pointer beside it.
type batch struct {
	n    uint32 // 0 once it has ended; changes under the stripe's lock
	note uint32
}

// batchOf is how many calls one stands for that was asked to stand for n.
func clampBatch(n int64) int64 { return min(max(n, 1), math.MaxUint32) }

// noCopy makes go vet complain about copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// IsZero reports whether this is no call: what a retired statistic gives.
func (c *Call) IsZero() bool { return c.st == nil }

// Enter counts a call that was admitted at the reading now, as n passes and one in flight. An n below 1 counts as 1, one above
// 2^32-1 as that.
// A statistic that was retired counts nothing, and the Call is no call.
func (s *Statistic) Enter(now leap.Reading, n int64) Call {
	st := s.pick()
	mark := st.end.Load()
	if n > 1 || !st.canEnterLockFree(mark, now) { // a batch, the first call of a bucket, or an odd stamp
		if b := s.Hold(now); !b.IsZero() {
			return b.Enter(n)
		}
		return Call{}
	}
	// If another goroutine turns the bucket here, the call counts into the next one, as late stamps do.
	st.entered.Add(entryWord(now))
	if st.end.Load() != mark && s.reconcileEnter(st, now) {
		return Call{}
	}
	return Call{st: st, entered: now, batch: batch{n: 1}}
}

// Bucket is the open bucket of a statistic, held by [Statistic.Hold] for a call that is decided about: it does not end before one
// of Enter, Record and Release: one of them must be called, once. Until then the statistic must not be used.
type Bucket struct {
	st  *stripe
	now leap.Reading
}

// Hold holds the bucket that a call at the reading now counts in, under the lock of a stripe: it is not over at that reading. A reading
// from before the open bucket counts into that one, because sealed seconds do not change. The bucket of a retired statistic is zero, and holds nothing.
func (s *Statistic) Hold(now leap.Reading) Bucket {
	st := s.pick()
	st.lock()
	if now >= st.bucketEnd() {
		st.turn(now)
	}
	if st.end.Load() == closedMark {
		st.unlock()
		return Bucket{}
	}
	return Bucket{st, now}
}

// IsZero reports whether the bucket is that of a retired statistic.
func (b Bucket) IsZero() bool { return b.st == nil }

// At is the line time at which the bucket starts.
func (b Bucket) At() time.Duration { return b.st.owner.start }

// Enter is [Statistic.Enter] for the call that the bucket was held for.
func (b Bucket) Enter(n int64) Call {
	st := b.st
	n = clampBatch(n)
	st.open.Pass = saturate(st.open.Pass, n-1)
	st.enterLocked(b.now)
	if st.end.Load()&slowPathBit != 0 {
		st.updateCounters()
	}
	st.unlock()
	return Call{st: st, entered: b.now, batch: batch{n: uint32(n)}}
}

// Record counts a call that is over, as one change: n passes, and n completions that took rt each, failed or not, with a code, of
// which 0 is none. Nothing of it was in flight. An n below 1 counts as 1, a negative rt as 0.
func (b Bucket) Record(rt time.Duration, n int64, failed bool, code Code) {
	st := b.st
	n, rt = max(n, 1), max(rt, 0)
	st.open.Pass = saturate(st.open.Pass, n)
	st.complete(rt, st.shape.layout.cell(rt), n, failed, code)
	st.rtExcess += rt * time.Duration(n) // nothing of it was in flight
	st.unlock()
}

// Release counts nothing.
func (b Bucket) Release() { b.st.unlock() }

// Resume is Enter for a call whose pass was counted elsewhere: it is in flight from here on, and does not pass.
func (s *Statistic) Resume(now leap.Reading, n int64) Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	s.lockStripes()
	defer s.unlockStripes()
	if s.retired() {
		return Call{}
	}
	s.ensureHistory() // so that the call in flight is in the records, though nothing was counted
	s.first.addInFlight(1, s.first.effectiveEntry(now))
	s.first.open.inFlightTime -= tickRemainder(now) // which Exit adds
	s.first.updateCounters()
	return Call{st: &s.first, entered: now, batch: batch{n: uint32(clampBatch(n))}}
}

// End is [Call.Exit] at the present reading of the timeline.
func (c *Call) End(failed bool, code Code) int64 {
	if c.st == nil {
		return 0
	}
	return c.Exit(c.st.shape.line.Now(), failed, code)
}

// SetNote keeps a note of the owner with the call. It must come before anybody else knows the call.
func (c *Call) SetNote(n uint32) { c.batch.note = n }

// Note is the owner's note, 0 if there is none.
func (c *Call) Note() uint32 { return c.batch.note }

// Entered is the reading at which the call entered.
func (c *Call) Entered() leap.Reading { return c.entered }

// Backdate makes the response time count from an earlier reading than that at which the call entered. What was in flight
// when does not change.
func (c *Call) Backdate(to leap.Reading) {
	st := c.st
	if st == nil || to >= c.entered {
		return
	}
	st.lock()
	defer st.unlock()
	if c.batch.n == 0 {
		return
	}
	st.open.inFlightTime += tickRemainder(c.entered) - tickRemainder(to) // Exit knows the earlier reading only, and adds the rest of that
	st.rtExcess += c.entered.Sub(to)
	c.entered = to
}

// Exit counts the end of the call at the reading now: completion, response time, exception if failed, its code (0 is
// none), and one less in flight, as one change. Only the first Exit of a Call counts, and it may come from any goroutine; Exit
// returns how many completions it counted. An end before the beginning is a response time of 0.
func (c *Call) Exit(now leap.Reading, failed bool, code Code) int64 {
	st := c.st
	if st == nil {
		return 0
	}
	rt := elapsed(c.entered, now)
	cell := st.shape.layout.cell(rt)
	if !st.mu.TryLock() { // as lock does, without a call
		st.lockContended()
	}
	n := int64(c.batch.n)
	if n == 0 {
		st.unlock()
		return 0
	}
	c.batch.n = 0
	end := st.end.Load()
	if now >= endOf(end) {
		st.turn(now)
		end = st.end.Load()
	}
	st.complete(rt, cell, n, failed, code)
	if n > 1 { // which were one in flight
		st.rtExcess += rt * time.Duration(n-1)
	}
	if inFlight := st.inFlightNow(); inFlight > st.maxInFlight {
		st.maxInFlight = inFlight
	}
	st.exited++
	st.open.inFlightTime += tickRemainder(c.entered) - max(int64(endOf(end)-max(now, c.entered)), 0)
	if end&slowPathBit != 0 {
		st.updateCounters()
	}
	often := st.needsRebalance // as unlock does
	st.mu.Unlock()
	if often {
		st.owner.rebalance(st)
	}
	return n
}

// elapsed is the time from one reading to another, 0 if that is before it.
func elapsed(from, to leap.Reading) time.Duration {
	if to <= from {
		return 0
	}
	if rt := to.Sub(from); rt > 0 {
		return rt
	}
	return math.MaxInt64
}

// Block counts a call that was refused at the reading now, as n blocks. An n below 1 counts as 1. It reports false if
// the statistic is retired, and counts nothing then.
func (s *Statistic) Block(now leap.Reading, n int64) bool {
	b := s.Hold(now)
	if b.IsZero() {
		return false
	}
	b.st.open.Block = saturate(b.st.open.Block, max(n, 1))
	b.Release()
	return true
}
