package collector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/windowstat/windowstat/leap"
)

// Running describes a call in flight that was entered with a context. [Collector.Oldest] returns it.
type Running struct {
	Resource, Origin, Entrance string
	// TraceID is the trace ID of the call, or of its nearest caller that has one. The option [TraceID] sets it. TraceID
	// is empty if the option is not used.
	TraceID string
	// Age is the time since the call entered.
	Age time.Duration
}

// Oldest returns the n calls that have been in flight longest, the oldest first. It considers only calls that were
// entered with a context: by [Collector.Enter], [Collector.Do], [Resource.EnterContext] and the middlewares. It cannot
// list calls that entered through [Resource.Enter], because the Collector keeps only their number. If more than about
// twenty thousand calls are in flight, some of them found no free slot when they began, and Oldest misses these calls.
//
// Oldest takes no lock and delays no call. It costs about ten microseconds, plus about ten nanoseconds for each call in
// flight. It calls Value on the contexts of the calls that it returns. A nil Collector has no calls.
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

// listOldest returns the n oldest calls in flight of the resource r. If r is nil, it considers the calls of all
// resources.
func (c *Collector) listOldest(n int, r *Resource) []Running {
	var found []*frame
	for f := range c.running.all {
		if r != nil && f.leaf.resource != r {
			continue
		}
		i, _ := slices.BinarySearchFunc(
			found,
			f,
			func(a, b *frame) int { return cmp.Compare(a.entered(), b.entered()) },
		)
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

// oldest yields a value for each resource that has a call in flight: the age of its oldest call in seconds, with the
// name of the resource as the label. It considers only the calls that [Collector.Oldest] can list.
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

// describe returns the description of the call of f. Its Age is the time from the entry of the call to the reading now.
func (f *frame) describe(now leap.Reading) Running {
	return Running{f.leaf.resource.name, f.leaf.origin, f.leaf.treeNode.entrance.name, f.traceID(), f.age(now)}
}

// traceID returns the trace ID of the call.
func (f *frame) traceID() (id string) {
	defer func() { _ = recover() }() // the Value method of a user-defined context may panic
	id, _ = f.Value(traceKey{}).(string)
	return id
}

func (f *frame) age(now leap.Reading) time.Duration { return max(now.Sub(f.entered()), 0) }

// traceKey is the context key of a trace ID.
type traceKey struct{}

// withTrace returns ctx with a trace ID. If the ID is invalid, it returns ctx unchanged.
func withTrace(ctx context.Context, id string) context.Context {
	if !validTraceID(id) {
		return ctx
	}
	return &traced{ctx, id}
}

// traced is a context with a trace ID. A context of [context.WithValue] takes twice the memory.
type traced struct {
	context.Context
	id string
}

// Value implements context.Context.
func (t *traced) Value(k any) any {
	if _, ok := k.(traceKey); ok {
		return t.id
	}
	return t.Context.Value(k)
}

// String describes the context. Without it, fmt would print the fields by reflection; see [frame.String].
func (t *traced) String() string { return fmt.Sprintf("%v.WithTraceID(%q)", t.Context, t.id) }

// slot holds the frame of a call in flight. A frame is the context that Collector.Enter or Resource.EnterContext
// returns; a call that was entered without a context has no frame. The start of a call sets a slot, and its end clears
// the slot: this costs two atomic writes and no lock. A slot therefore retains no call that has ended.
type slot = atomic.Pointer[frame]

// slotShard is a group of slots that fills a cache line. A goroutine chooses a shard by the address of its stack. A
// goroutine therefore usually chooses the same shard again, and other processors rarely write to the cache line of this
// shard. If the shard is full, the goroutine tries up to eight shards of another table. The address of the frame
// determines the first of these. In this drawing, f is a frame:
//
//	first   64 shards of 8 slots    |f| | |f| | | | |  | | | …     chosen by the address of the stack; one try
//	more  4096 shards of 8 slots    |f|f|f|f|f|f|f|f|  |f| | …     chosen by the address of the frame; up to 8 tries
//
// Slots are numbered from 1, across both tables. The note of a call (a number that node.Call stores for the Collector)
// holds the number of its slot. The number 0 means that the call was entered without a context.
type slotShard [8]slot

// slots holds the slots of a Collector, in two tables.
type slots struct {
	first [firstShards]slotShard
	more  atomic.Pointer[[moreShards]slotShard] // nil until a call finds its shard in slots.first full

	unlisted atomic.Int64 // number of calls in flight that have a frame, but found no free slot
}

const firstShards, moreShards = 64, 4096

// unlisted is the result of slots.put for a call that finds no free slot. It is greater than the number of every slot.
const unlisted = (firstShards+moreShards)*8 + 1

// shard returns the shard with number n. The table slots.first has the shards with the numbers below firstShards. The
// table slots.more has the other shards. If n is firstShards or more, slots.more must exist.
func (s *slots) shard(n uint32) *slotShard {
	if n < firstShards {
		return &s.first[n]
	}
	return &s.more.Load()[n-firstShards]
}

// put stores a frame in a free slot and returns the number of the slot. If all slots that it tries are taken, put
// counts the frame in s.unlisted and returns the constant unlisted.
func (s *slots) put(f *frame) uint32 {
	var here byte
	if number := s.take(choose(unsafe.Pointer(&here), 11, firstShards), f); number > 0 {
		return number
	}
	if s.more.Load() == nil {
		s.more.CompareAndSwap(nil, new([moreShards]slotShard))
	}
	from := choose(unsafe.Pointer(f), 5, moreShards)
	for probe := range uint32(8) {
		if number := s.take(firstShards+(from+probe)%moreShards, f); number > 0 {
			return number
		}
	}
	s.unlisted.Add(1)
	return unlisted
}

// choose hashes an address to a number below n, the number of shards. It first drops the lowest bits of the address,
// because they are the same for many addresses. The parameter low is the number of bits to drop.
func choose(address unsafe.Pointer, low int, n uint32) uint32 {
	return uint32(uint64(uintptr(address))>>low*0x9e3779b97f4a7c15>>32) % n
}

// take stores a frame in an empty slot of the shard with this number and returns the number of the slot, or 0 if the
// shard is full.
func (s *slots) take(shard uint32, f *frame) uint32 {
	l := s.shard(shard)
	for i := range l {
		if l[i].Load() == nil && l[i].CompareAndSwap(nil, f) {
			return shard*8 + uint32(i) + 1
		}
	}
	return 0
}

// empty undoes a call of put. The parameter number is the result of put. If it is the number of a slot, empty removes
// the frame from the slot. If it is the constant unlisted, empty subtracts 1 from s.unlisted. If it is 0, the call has
// no frame, and empty does nothing.
func (s *slots) empty(number uint32) {
	switch number {
	case 0:
	case unlisted:
		s.unlisted.Add(-1)
	default:
		s.shard((number - 1) / 8)[(number-1)%8].Store(nil)
	}
}

// all iterates over the frames in all slots.
func (s *slots) all(yield func(*frame) bool) {
	shards := uint32(firstShards)
	if s.more.Load() != nil {
		shards += moreShards
	}
	for n := range shards {
		l := s.shard(n)
		for i := range l {
			if f := l[i].Load(); f != nil && !yield(f) {
				return
			}
		}
	}
}
