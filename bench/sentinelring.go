package bench

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// SentinelRing is a ring of buckets with atomic counters that turns like Sentinel's ring. A writer that finds a stale
// bucket tries a lock, publishes the bucket's new start, and then clears its counters. A writer that does not get the
// lock yields and tries again.
//
// SentinelRing reproduces Sentinel's errors on purpose. A writer that sees the new start before the counters are clear
// adds a count, which is then cleared. A writer that saw the old start, and gets the lock after another writer has
// turned the bucket, clears it a second time. A writer that found its bucket and was then descheduled for a round of
// the ring adds to a later time. A writer whose time is before its bucket is dropped. The three counters of a call may
// fall into two buckets.
type SentinelRing struct {
	length   time.Duration
	cells    []ringCell
	turning  sync.Mutex
	inFlight atomic.Int64
}

type ringCell struct {
	index              atomic.Int64
	pass, complete, rt atomic.Int64
}

// NewSentinelRing returns a ring of Sentinel's default shape: 20 buckets of half a second. A reading covers the last
// second.
func NewSentinelRing() *SentinelRing { return NewSentinelRingOf(20, 500*time.Millisecond) }

// NewSentinelRingOf returns a ring of n buckets of the given length, which must divide one second.
func NewSentinelRingOf(n int, length time.Duration) *SentinelRing {
	r := &SentinelRing{length: length, cells: make([]ringCell, n)}
	for i := range r.cells {
		r.cells[i].index.Store(-1)
	}
	return r
}

// cell returns the bucket of now, and turns the bucket if it is stale. It returns nil for a time before the bucket.
func (r *SentinelRing) cell(now time.Duration) *ringCell {
	index := int64(now / r.length)
	c := &r.cells[index%int64(len(r.cells))]
	for {
		switch old := c.index.Load(); {
		case old == index:
			return c
		case old > index:
			return nil
		case r.turning.TryLock():
			c.index.Store(index)
			c.pass.Store(0)
			c.complete.Store(0)
			c.rt.Store(0)
			r.turning.Unlock()
			return c
		default:
			runtime.Gosched()
		}
	}
}

// Enter counts a call that begins at the reading now.
func (r *SentinelRing) Enter(now time.Duration) {
	r.inFlight.Add(1)
	if c := r.cell(now); c != nil {
		c.pass.Add(1)
	}
}

// Exit counts the end of a call at the reading now.
func (r *SentinelRing) Exit(now, rt time.Duration) {
	if c := r.cell(now); c != nil {
		c.rt.Add(int64(rt))
		c.complete.Add(1)
	}
	r.inFlight.Add(-1)
}

// Sum returns the counts of the last second before the end of now's bucket.
func (r *SentinelRing) Sum(now time.Duration) Cell {
	last := int64(now / r.length)
	first := last - int64(time.Second/r.length)
	var sum Cell
	r.Each(func(index int64, c Cell) {
		if index > first && index <= last {
			sum.add(c)
		}
	})
	return sum
}

// Each passes the stored buckets to take, by index, in no particular order.
func (r *SentinelRing) Each(take func(index int64, c Cell)) {
	for i := range r.cells {
		c := &r.cells[i]
		if index := c.index.Load(); index >= 0 {
			take(index, Cell{Pass: c.pass.Load(), Complete: c.complete.Load(), RTSum: time.Duration(c.rt.Load())})
		}
	}
}

func newSentinelRings(names []string) (Recorder, error) {
	list := make([]*SentinelRing, len(names))
	for i := range list {
		list[i] = NewSentinelRing()
	}
	return Recorder{
		Call: func(i int) {
			start := Now()
			list[i].Enter(start)
			end := Now()
			list[i].Exit(end, end-start)
		},
		Took: func(i int, rt time.Duration) {
			list[i].Enter(0)
			list[i].Exit(rt, rt)
		},
	}, nil
}
