package collector

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/windowstat/windowstat/leap"
)

// Running is a call in flight that has a context, as [Collector.Running] lists it.
type Running struct {
	Resource, Origin, Entrance string
	// TraceID is that of [TraceID], of this call or the nearest one above it; empty without one.
	TraceID string
	// Age is how long the call has been in flight: its response time so far.
	Age time.Duration
}

// Running lists the calls in flight that entered by a context: by [Collector.Enter], [Collector.Do], [Resource.EnterContext] and the
// middlewares. Calls by a handle are in none of its answers, because nothing is kept of them but their number. A call that begins or
// ends meanwhile may be in it or not. With more than some twenty
// thousand calls in flight at once in the process it misses a few, which found no place in the list when they began.
//
// It takes no lock and holds up no call. It costs some ten microseconds, and up to a microsecond for each call. It asks contexts for their
// values. A nil Collector has none.
func (c *Collector) Running() iter.Seq[Running] {
	return func(yield func(Running) bool) {
		if c == nil {
			return
		}
		now := c.line.Now()
		for f := range c.frames {
			if !yield(f.describe(now)) {
				return
			}
		}
	}
}

// Oldest is the n calls of [Collector.Running] that have been in flight for longest, the oldest first.
func (c *Collector) Oldest(n int) []Running {
	var all []Running
	for x := range c.Running() {
		i, _ := slices.BinarySearchFunc(all, x.Age, func(a Running, age time.Duration) int { return cmp.Compare(age, a.Age) })
		if i >= n {
			continue
		}
		all = slices.Insert(all, i, x)
		all = all[:min(len(all), n)]
	}
	return all
}

// oldest yields the age of the oldest call of each resource that has calls in [Collector.Running].
func (c *Collector) oldest(yield func(v float64, labels ...string)) {
	first := map[*Resource]*frame{}
	for f := range c.frames {
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
	x := Running{Resource: f.leaf.resource.name, Origin: f.leaf.origin, Entrance: f.leaf.treeNode.entrance.name, Age: f.age(now)}
	defer func() { _ = recover() }() // a context of somebody's own may panic
	x.TraceID, _ = f.Value(traceKey{}).(string)
	return x
}

func (f *frame) age(now leap.Reading) time.Duration { return max(now.Sub(f.entered()), 0) }

// traceKey finds the trace id of a call in its context.
type traceKey struct{}

// withTrace is ctx with a trace id.
func withTrace(ctx context.Context, id string) context.Context {
	if len(id) > maxTraceID || !utf8.ValidString(id) {
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

// The lines are those of all Collectors, and most have a fixed address, because to find them by way of a Collector takes a call longer
// than to store.
var (
	lines     [256]lineOfSlots
	moreLines atomic.Pointer[[4096]lineOfSlots] // nil until a call finds its line full
)

// register puts a frame into a slot, and returns the slot's number, 0 if those that it may have are taken.
func (f *frame) register() uint32 {
	var here byte
	n := line(unsafe.Pointer(&here), 11, uint32(len(lines)))
	if i := lines[n].take(f); i >= 0 {
		return n*8 + uint32(i) + 1
	}
	more := moreLines.Load()
	if more == nil {
		moreLines.CompareAndSwap(nil, new([4096]lineOfSlots))
		more = moreLines.Load()
	}
	first := line(unsafe.Pointer(f), 5, uint32(len(more)))
	for probe := range uint32(8) {
		n := (first + probe) % uint32(len(more))
		if i := more[n].take(f); i >= 0 {
			return (uint32(len(lines))+n)*8 + uint32(i) + 1
		}
	}
	return 0
}

// line chooses one of n lines by an address, less its low bits, which many have in common.
func line(at unsafe.Pointer, low int, n uint32) uint32 {
	return uint32(uint64(uintptr(at))>>low*0x9e3779b97f4a7c15>>32) % n
}

// take puts a frame into a slot that is empty, and returns which, -1 if there is none.
func (l *lineOfSlots) take(f *frame) int {
	for i := range l {
		if l[i].Load() == nil && l[i].CompareAndSwap(nil, f) {
			return i
		}
	}
	return -1
}

// unregister empties the slot with a number that register returned.
func unregister(number uint32) {
	switch n := int(number) - 1; {
	case n < 0:
	case n/8 < len(lines):
		lines[n/8][n%8].Store(nil)
	default:
		moreLines.Load()[n/8-len(lines)][n%8].Store(nil)
	}
}

// frames yields the frames that are in slots.
func (c *Collector) frames(yield func(*frame) bool) {
	all := [][]lineOfSlots{lines[:]}
	if more := moreLines.Load(); more != nil {
		all = append(all, more[:])
	}
	for _, list := range all {
		for n := range list {
			for i := range list[n] {
				if f := list[n][i].Load(); f != nil && f.leaf.resource.c == c && !yield(f) {
					return
				}
			}
		}
	}
}
