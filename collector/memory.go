package collector

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/windowstat/windowstat/node"
)

// The memory of a Collector
//
// Reservations bound the memory. A new resource or leaf reserves the memory that it needs when it is busy. A resource
// or leaf that is retired releases its reservation. An existing leaf therefore never loses a record for lack of memory.
// These reservations exist:
//
//	reservation                           for
//	fixed                                 the resource Other with its leaves, Options.Given, the slots of running.go,
//	                                      and up to a sixteenth of MaxMemory for limiters of overflowing names
//	resource                              a name with its views, blocks by reason, exceptions by class, its limiter
//	leaf                                  a statistic with a full history, its origin and its tree node
//	entrance                              an entrance of the call tree
//	edge                                  an edge of the call tree: one resource calls another
//	excess                                memory that leaves, resources and limiters take beyond their reservations
//
// (An overflowing name has no resource: another resource records its calls.)
//
// A call creates a new resource or leaf only if the sum of all reservations then stays within [Options].MaxMemory.
// Otherwise [Other] records the call: see location. A further leaf of a resource, or a new edge, is created only if the
// sum stays within three quarters of MaxMemory. The last quarter is for new resources with their first leaves. Clients
// that invent origins can therefore not use up the memory for new resources.
//
// The size of a reservation is typical of a busy resource or leaf. Some resources and leaves take more than they have
// reserved, for example a leaf with widely varying response times. Every ten seconds, a sweep adds up this excess: see
// memoryOf. It also adds the excess of the limiters of overflowing names. The excess counts as reserved, so the
// Collector accepts fewer new names.

// reservations holds the sizes of the reservations in bytes; the table above describes them. The sizes depend on
// [Options].Windows. The fields leaf and fixed also depend on Options.OpenTelemetry. The fields fixed, overflow and
// limiters also depend on Options.MaxResources and Options.MaxMemory. The field fixed also depends on Options.Given.
type reservations struct {
	fixed, resource, leaf, entrance, edge int64
	overflow                              int64 // for all limiters of overflowing names together; a part of fixed
	limiters                              int   // maximum number of limiters of overflowing names
}

// These constants estimate, in bytes, the memory outside of the structs: map nodes, closures, names and slots of
// slices. unsafe.Sizeof does not include this memory.
const (
	// An entry of a map or sync.Map, with its share of the map's inner nodes. An edge of the call tree also needs a
	// slot in TreeNode.parents, and the number includes this slot.
	mapEntry = 160
	names    = 256 // a name of at most MaxNameLength bytes, and its copies in map keys
	perView  = 24  // one leaf in the list of a shared view: three pointers, because append allocates spare capacity
)

// newReservations computes the reservations of a Collector with the options o. config is the configuration of the
// Collector's statistics.
func newReservations(config *node.Config, o *Options) (s reservations) {
	view := node.NewView(config, 0).Memory() + int64(unsafe.Sizeof(generation{}))
	treeNode := int64(unsafe.Sizeof(TreeNode{})) + view + mapEntry
	quota := config.QuotaMemory()
	// Assume that a limiter has two rules, and that each rule has a meter and a quota.
	limiter := int64(unsafe.Sizeof(limiter{})) + mapEntry +
		2*(int64(unsafe.Sizeof(rule{})+unsafe.Sizeof(meter{}))+quota)
	s.limiters = int(min(o.MaxMemory/limiterShare/limiter, int64(o.MaxResources)))
	s.overflow = int64(s.limiters) * limiter
	s.resource = int64(unsafe.Sizeof(Resource{})) + view + mapEntry + names + limiter
	s.leaf = config.Reservation() + int64(unsafe.Sizeof(leaf{})-unsafe.Sizeof(node.Statistic{})) +
		view + mapEntry + treeNode + 3*perView
	if o.OpenTelemetry {
		s.leaf += config.SplitReservation()
	}
	s.entrance = treeNode + names
	s.edge = mapEntry
	s.fixed = int64(unsafe.Sizeof(Collector{})) + int64(unsafe.Sizeof([moreShards]slotShard{})) +
		s.resource + spareLeaves*s.leaf + int64(len(o.Given))*s.resource + s.overflow
	return s
}

// limiterShare bounds the limiters of overflowing names: they take at most 1/limiterShare of MaxMemory.
const limiterShare = 16

// spareLeaves is the number of spare leaves for one origin of the resource [Other]. If there is no memory for the leaf
// of a call, a spare leaf records the call. An origin needs 2 * 2 = 4 spare leaves, because inbound and other calls
// have separate leaves, and so do nested and outermost calls. There are spare leaves for each origin in a limit, and
// for the origin Other, to which the calls of all other origins then belong.
const spareLeaves = 4

// reserved returns the sum of all reservations.
func (c *Collector) reserved() int64 {
	s, rules := &c.sizes, c.limits.Load()
	// The memory of spare leaves is reserved before they exist: s.fixed includes four spare leaves, and the sum below
	// has four more for each origin in a limit. leafCount also includes the spare leaves that exist, so subtract their
	// number. Each name in a limit reserves a resource, because such a name can be registered even if the table is
	// full.
	return s.fixed + c.excess.Load() +
		(c.registered.Load()+int64(len(rules.names)))*s.resource +
		(c.leafCount.Load()-c.sparesInUse.Load()+int64(len(rules.origins))*spareLeaves)*s.leaf +
		c.edges.Load()*s.edge + int64(len(*c.entrances.Load()))*s.entrance
}

// fits reports whether n more bytes can be reserved.
func (c *Collector) fits(n int64) bool { return c.reserved()+n <= c.opts.MaxMemory }

// fitsMore is like fits, but with three quarters of MaxMemory as the maximum. The last quarter is for new resources and
// their first leaves.
func (c *Collector) fitsMore(n int64) bool { return c.reserved()+n <= c.opts.MaxMemory/4*3 }

// leafFits reports whether there is memory for a new leaf of r. The first leaf of r may use the last quarter of
// MaxMemory; further leaves may not.
func (c *Collector) leafFits(r *Resource) bool {
	if r.view.Empty() {
		return c.fits(c.sizes.leaf)
	}
	return c.fitsMore(c.sizes.leaf)
}

// memoryOfNames returns the number of bytes that suffice for the resources in Given and for MaxResources other
// resources, if each resource has one busy leaf.
func (o Options) memoryOfNames(config *node.Config) int64 {
	o.MaxMemory = math.MaxInt64 // so that newReservations reserves MaxResources limiters of overflowing names
	s := newReservations(config, &o)
	return s.fixed + s.entrance + int64(min(o.MaxResources, 1<<30)+len(o.Given))*(s.resource+s.leaf)
}

// checkMemory returns an error if MaxMemory is too small for the fixed reservation and one resource with one leaf. Of
// MaxMemory, a sixteenth (1/limiterShare) is for limiters of overflowing names. least is therefore increased by a
// fifteenth.
func (o *Options) checkMemory(config *node.Config) error {
	s := newReservations(config, o)
	least := s.fixed - s.overflow + s.resource + s.entrance + s.leaf
	if least += least/(limiterShare-1) + 1; o.MaxMemory < least {
		return fmt.Errorf("%d bytes; at least %d are needed", o.MaxMemory, least)
	}
	return nil
}

// Memory holds the bytes of heap that each part of a Collector takes.
type Memory struct {
	// Statistics is the memory of counters, windows and totals. Seconds is the memory of the records of sealed seconds,
	// and Histograms is the memory of the histograms of sealed seconds.
	Statistics, Seconds, Histograms int64
	// Names is the memory of resources, origins, entrances and the call tree. Limits is the memory of limits.
	Names, Limits int64
	// Calls is the memory of calls in flight: their contexts, their trace IDs, and their reservations. (A call has a
	// reservation in two cases: a dry run would have refused it, or limits apply to it and a resource with another name
	// records it.) A call that was entered without a context, and has no reservation, takes no memory.
	Calls int64
}

// Sum returns the sum of all parts.
func (m Memory) Sum() int64 {
	return m.Statistics + m.Seconds + m.Histograms + m.Names + m.Limits + m.Calls
}

// parts iterates over the parts with their names.
func (m Memory) parts(yield func(v float64, labels ...string)) {
	yield(float64(m.Statistics), "statistics")
	yield(float64(m.Seconds), "seconds")
	yield(float64(m.Histograms), "histograms")
	yield(float64(m.Names), "names")
	yield(float64(m.Limits), "limits")
	yield(float64(m.Calls), "calls")
}

// Memory returns the memory that the Collector holds. The result is an estimate from the sizes of the parts. It differs
// from the live heap by at most a tenth. [Options].MaxMemory bounds the sum of all parts except Calls. It cannot bound
// Calls, because the service decides how many calls are in flight. The cost is linear in the number of leaves and of
// calls in flight. Memory locks each leaf for a short time. A nil Collector takes no memory.
func (c *Collector) Memory() (m Memory) {
	if c == nil {
		return m
	}
	for _, r := range c.all() {
		x, _ := c.memoryOf(r)
		m.add(x)
	}
	m.Names += int64(unsafe.Sizeof(*c))
	for _, v := range []*node.View{c.root.view, c.inbound.view} {
		m.Names += v.Memory()
	}
	for _, e := range *c.entrances.Load() {
		m.Names += e.memory() + int64(len(e.name))
	}
	if c.running.more.Load() != nil {
		m.Names += int64(unsafe.Sizeof([moreShards]slotShard{}))
	}
	m.Limits += c.overflowLimiters.memory()
	m.Calls = c.running.memory() + c.reservationsInUse.Load()*int64(unsafe.Sizeof(reservation{}))
	return m
}

// add adds each part of o to the same part of m.
func (m *Memory) add(o Memory) {
	m.Statistics += o.Statistics
	m.Seconds += o.Seconds
	m.Histograms += o.Histograms
	m.Names += o.Names
	m.Limits += o.Limits
	m.Calls += o.Calls
}

// memory returns the memory of the calls with a frame (a context that Enter returned). For each call whose frame found
// no free slot, memory adds the average memory of a call with a slot.
func (s *slots) memory() (n int64) {
	each, listed := int64(unsafe.Sizeof(frame{})), int64(0)
	for f := range s.all {
		n += each
		if t, ok := f.Context.(*traced); ok {
			n += int64(unsafe.Sizeof(*t)) + int64(len(t.id))
		}
		listed++
	}
	if listed > 0 {
		each = n / listed
	}
	return n + each*s.unlisted.Load()
}

// memoryOf returns the memory of a resource with its leaves. The result excess is the sum of the bytes by which the
// resource itself, and each of its leaves, exceeds its own reservation. A leaf that takes less than its reservation
// does not reduce the sum.
func (c *Collector) memoryOf(r *Resource) (m Memory, excess int64) {
	for _, t := range r.treeNodes() {
		m.Names += t.memory()
		for _, l := range t.listLeaves() {
			x := l.Statistic.Memory()
			own := int64(unsafe.Sizeof(*l) - unsafe.Sizeof(l.Statistic))
			m.Statistics += x.Statistic + own
			m.Seconds += x.Seconds
			m.Histograms += x.Histograms
			excess += max(x.Sum()+own-c.sizes.leaf, 0)
		}
	}
	n := int64(unsafe.Sizeof(*r)) + r.view.Memory() + int64(len(r.name)) + mapEntry + r.blocks.memory() +
		r.exceptions.memory() + exemplarMemory(loaded(&r.traced))
	limits := r.limiterState.Load().memory()
	excess += max(n+limits-c.sizes.resource, 0)
	for name, o := range loaded(&r.origins) {
		n += int64(unsafe.Sizeof(*o)) + o.view.Memory() + int64(len(name)) + mapEntry
	}
	m.Names += n
	m.Limits += limits
	return m, excess
}

// memory returns the memory of a tree node without its leaves.
func (t *TreeNode) memory() int64 {
	leaves := loaded(&t.leaves)
	return int64(unsafe.Sizeof(*t)) + t.view.Memory() + mapEntry +
		int64(cap(leaves.list))*int64(unsafe.Sizeof((*leaf)(nil))) +
		int64(len(leaves.byKey))*int64(2*unsafe.Sizeof(leafKey{}))
}

// memory returns the memory of the values and their counts.
func (v *counterVec) memory() (n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n = int64(cap(v.counts)) * int64(unsafe.Sizeof(labelled[int64]{}))
	for _, x := range v.counts {
		n += int64(len(x.value))
	}
	return n
}

// exemplarMemory returns the memory of the exemplars of a resource.
func exemplarMemory(list []atomic.Pointer[Exemplar]) (n int64) {
	for i := range list {
		n += int64(unsafe.Sizeof(list[i]))
		if x := list[i].Load(); x != nil {
			n += int64(unsafe.Sizeof(*x)) + int64(len(x.TraceID))
		}
	}
	return n
}

// memory returns the memory of a limiter, which may be nil.
func (m *limiter) memory() int64 {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := int64(unsafe.Sizeof(*m)) + int64(len(m.name)) +
		int64(cap(m.dryCounts))*int64(unsafe.Sizeof(labelled[dryCount]{}))
	for _, x := range m.dryCounts {
		if x.of.stat != nil {
			n += x.of.stat.Memory().Sum()
		}
	}
	return n + m.quotas.memory(m.c.shape) + m.dry.memory(m.c.shape)
}

// memory returns the memory of the rules and meters, without the struct quotas itself. The limiter's mu must be held.
func (s *quotas) memory(config *node.Config) int64 {
	n := int64(cap(s.qps)+cap(s.concurrency)) * int64(unsafe.Sizeof(rule{}))
	// Each QPS rule has a Quota. The Quota refers to the passes of a meter, and the function count adds the memory of
	// these passes.
	n += int64(len(s.qps)) * int64(unsafe.Sizeof(node.Quota{}))
	count := func(x *meter) {
		for _, q := range [...]*node.Quota{x.passes, x.overflowPasses} {
			if q != nil {
				n += config.QuotaMemory()
			}
		}
	}
	count(&s.all)
	for origin, x := range s.origins {
		count(x)
		n += int64(unsafe.Sizeof(*x)) + int64(len(origin)) + mapEntry
	}
	return n
}

// memory returns the memory of all limiters of overflowing names.
func (t *overflowLimiters) memory() (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, list := range [...]map[string]*limiter{t.byName, t.byPattern} {
		for _, m := range list {
			n += m.memory() + mapEntry
		}
	}
	return n
}
