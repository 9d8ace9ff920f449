package collector

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/windowstat/windowstat/leap"
)

// Running is a call in flight that entered by a context, as [Collector.Oldest] lists it.
type Running struct {
	Resource, Origin, Entrance string
	// TraceID is that of [TraceID], of this call or the nearest one above it; empty without one.
	TraceID string
	// Age is how long the call has been in flight: its response time so far.
	Age time.Duration
}

// Oldest lists the n calls that have been in flight for longest, the oldest first, of those that entered by a context: by
// [Collector.Enter], [Collector.Do], [Resource.EnterContext] and the middlewares. Calls by a handle are not in the list, because nothing
// is kept of them but their number. With more than some twenty thousand calls in flight at once it misses a few, which
// found no place in the list when they began.
//
// It takes no lock and holds up no call. It costs some ten microseconds, and some ten nanoseconds for each call in flight. It asks the
// contexts of the calls that it lists for a value. A nil Collector has no calls.
func (c *Collector) Oldest(n int) []Running {
	if c == nil {
		return nil
	}
	return c.listOldest(n, nil)
}

// Oldest is [Collector.Oldest] for the calls of the resource.
func (r *Resource) Oldest(n int) []Running {
	if r == nil {
		return nil
	}
	return r.c.listOldest(n, r.now())
}

// listOldest lists the n oldest calls of a resource, of all resources for nil.
func (c *Collector) listOldest(n int, of *Resource) []Running {
	var found []*frame
	for f := range c.running.all {
		if of != nil && f.leaf.resource != of {
			continue
		}
		i, _ := slices.BinarySearchFunc(found, f, func(a, b *frame) int { return cmp.Compare(a.entered(), b.entered()) })
		if i < n {
			found = slices.Insert(found, i, f)[:min(len(found)+1, n)]
		}
	}
	now := c.line.Now()
	list := make([]Running, len(found))
	for i, f := range found {
		list[i] = f.describe(now)
	}
	return list
}

// oldest yields the age of the oldest call of each resource that has calls in the list of [Collector.Oldest].
func (c *Collector) oldest(yield func(v float64, labels ...string)) {
	first := map[*Resource]*frame{}
	for f := range c.running.all {
		if x := first[f.leaf.resource]; x == nil || f.entered() < x.entered() {
			first[f.leaf.resource] = f
		}
	}
	if len(first) == 0 {
		return
	}
	now := c.line.Now()
	for r, f := range first {
		yield(f.age(now).Seconds(), r.name)
	}
}

// describe describes the call at the reading now.
func (f *frame) describe(now leap.Reading) Running {
	return Running{f.leaf.resource.name, f.leaf.origin, f.leaf.treeNode.entrance.name, f.traceID(), f.age(now)}
}

// traceID finds the trace of the call.
func (f *frame) traceID() (id string) {
	defer func() { _ = recover() }() // a context of somebody's own may panic
	id, _ = f.Value(traceKey{}).(string)
	return id
}

func (f *frame) age(now leap.Reading) time.Duration { return max(now.Sub(f.entered()), 0) }

// traceKey finds the trace id of a call in its context.
type traceKey struct{}

// withTrace is ctx with a trace id.
func withTrace(ctx context.Context, id string) context.Context {
	if !validTraceID(id) {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, id)
}

// slot holds a call in flight that has a context, from when it enters until it ends. So the list costs a call two atomic stores and no
// lock, and keeps no call that has ended.
type slot = atomic.Pointer[frame]

// lineOfSlots fills a cache line. A goroutine looks in a line that its stack's address chooses, so that it finds the line in its cache,
// and rarely one that another processor writes to; if it is full, in others, which the frame's address chooses.
type lineOfSlots [8]slot

// slots are those of a Collector.
type slots struct {
	first [firstLines]lineOfSlots
	more  atomic.Pointer[[moreLines]lineOfSlots] // nil until a call finds its line full
}

const firstLines, moreLines = 64, 4096

// line is the line with a number: those behind the first are of more, which there is.
func (s *slots) line(n uint32) *lineOfSlots {
	if n < firstLines {
		return &s.first[n]
	}
	return &s.more.Load()[n-firstLines]
}

// put puts a frame into a slot, and returns the slot's number, 0 if those that it may have are taken.
func (s *slots) put(f *frame) uint32 {
	var here byte
	if number := s.take(choose(unsafe.Pointer(&here), 11, firstLines), f); number > 0 {
		return number
	}
	if s.more.Load() == nil {
		s.more.CompareAndSwap(nil, new([moreLines]lineOfSlots))
	}
	from := choose(unsafe.Pointer(f), 5, moreLines)
	for probe := range uint32(8) {
		if number := s.take(firstLines+(from+probe)%moreLines, f); number > 0 {
			return number
		}
	}
	return 0
}

// choose chooses one of n lines by an address, less its low bits, which many have in common.
func choose(at unsafe.Pointer, low int, n uint32) uint32 {
	return uint32(uint64(uintptr(at))>>low*0x9e3779b97f4a7c15>>32) % n
}

// take puts a frame into an empty slot of a line, and returns the slot's number, 0 if there is none.
func (s *slots) take(line uint32, f *frame) uint32 {
	l := s.line(line)
	for i := range l {
		if l[i].Load() == nil && l[i].CompareAndSwap(nil, f) {
			return line*8 + uint32(i) + 1
		}
	}
	return 0
}

// empty empties the slot with a number that put returned.
func (s *slots) empty(number uint32) {
	if number > 0 {
		s.line((number - 1) / 8)[(number-1)%8].Store(nil)
	}
}

// all yields the frames that are in slots.
func (s *slots) all(yield func(*frame) bool) {
	lines := uint32(firstLines)
	if s.more.Load() != nil {
		lines += moreLines
	}
	for n := range lines {
		l := s.line(n)
		for i := range l {
			if f := l[i].Load(); f != nil && !yield(f) {
				return
			}
		}
	}
}
