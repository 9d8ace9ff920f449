package collector

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// Collector holds the statistics of a process by resource, origin and entrance. It also holds the call tree.
//
//	Collector                    registry: names, limits, self-metrics
//	  Resource "GET /cart"       one for each name; see [Options].MaxResources
//	    TreeNode "web"           one for each entrance through which the resource was called
//	      leaf mobile, inbound   one for each origin, with separate leaves for inbound and nested calls
//	        node.Statistic       the counters; only a leaf has them
//	  View                       reads the sum of several leaves: of a resource, an origin, an entrance,
//	                             all inbound calls, or the process
//
// Create a Collector with [New]. A nil *Collector is disabled: its resources are nil and record nothing. A Collector is
// safe for concurrent use and starts no goroutine.
//
// Lock order, with the lock that a goroutine takes first on the left: limitsMu, sweeping.mu, compactMu, mu,
// overflowLimiters.mu, limiters, views, statistics. Most calls take none of the first four locks. There are four
// exceptions: the first call that a leaf records, the first call from one node of the call tree to another, the first
// call that a resource records for another name (see [FallbackResource]), and a call with a new name while the table
// is full.
type Collector struct {
	line  *leap.Timeline
	shape *node.Config
	opts  Options

	began time.Time // time of creation, by the wall clock
	run   int64     // see RunID

	byName     sync.Map                    // *Resource by name; see CleanName
	registered atomic.Int64                // size of byName, except Options.Given; changes only with mu held
	other      atomic.Pointer[Resource]    // the resource Other; nil until it is needed
	entrances  atomic.Pointer[[]*TreeNode] // in order of registration; replaced with mu held, never modified in place

	root             *TreeNode
	inbound          generation
	limits           atomic.Pointer[ruleSet]
	overflowLimiters *overflowLimiters // limiters of names that have no resource

	leafCount           atomic.Int64 // number of leaves
	edges               atomic.Int64 // number of edges of the tree, each from a caller to a callee
	swept               atomic.Int64 // index of the second in which the last sweep ended; see sweep
	excess, sparesInUse atomic.Int64 // see memory.go
	sizes               reservations
	sealed              atomic.Int64 // index of a second; all leaves have sealed the seconds before it

	overflow struct{ origins, entrances, leaves, tree atomic.Int64 }
	unearned atomic.Int64 // see Health.Unearned
	running  slots

	reservationsInUse atomic.Int64 // calls in flight with a reservation: see limitreserve.go

	idle atomic.Pointer[idleResources] // resources that a new name may evict; the list is replaced, never modified

	limitsMu sync.Mutex // held by SetLimits
	sweeping sweeper

	mu        fairMutex   // guards resources, gone and retired; held while names and leaves are registered
	resources []*Resource // in order of registration; compact replaces the slice
	gone      struct {    // numbers of retired resources and leaves that compact must still remove
		resources int
		leaves    int64
	}
	retired   int64      // number of retired resources
	compactMu sync.Mutex // held by compact, which removes retired resources and leaves; locked before mu

	publishedMu sync.Mutex // guards the slice published; its elements are never modified
	published   []*publication
}

// New creates a Collector. The error names every option that is out of range.
func New(o Options) (*Collector, error) {
	var clock leap.Clock
	if o.Now != nil {
		clock = clockOf(o.Now)
	}
	clock.StartAfter = o.After
	return newOn(leap.NewTimeline(clock), o)
}

// newOn is New on an existing timeline.
func newOn(line *leap.Timeline, o Options) (*Collector, error) {
	shape, err := o.complete(line)
	if err != nil {
		return nil, err
	}
	c := &Collector{line: line, shape: shape, opts: o, sizes: newReservations(shape, &o)}
	now := line.Now()
	c.began = c.now()
	c.run = newRun(c.began)
	c.swept.Store(line.At(now).Index)
	c.sealed.Store(line.At(now).Index)
	c.root = &TreeNode{name: Root}
	c.root.generation.init(c, node.NewView(shape, now), nil, nil)
	c.inbound.init(c, node.NewView(shape, now), nil, nil)
	c.limits.Store(newRuleSet(nil))
	c.entrances.Store(new([]*TreeNode))
	c.overflowLimiters = newOverflowLimiters(c)
	for _, name := range o.Given {
		if name = CleanName(name); name == Other {
			continue
		}
		if _, twice := c.byName.Load(name); !twice {
			r := c.newResource(name)
			r.permanent = true
			r.given.Store(true)
			c.byName.Store(name, r)
		}
	}
	return c, nil
}

// clockOf returns a clock with the times of readTime, the function in [Options].Now. If the times of readTime go back,
// the monotonic clock stops until readTime returns a later time than ever before.
func clockOf(readTime func() time.Time) leap.Clock {
	anchor := readTime()
	var mu sync.Mutex
	var latest time.Duration
	return leap.Clock{
		Wall: readTime,
		Mono: func() time.Duration {
			since := readTime().Sub(anchor)
			mu.Lock()
			defer mu.Unlock()
			latest = max(latest, since)
			return latest
		},
	}
}

// Timeline returns the timeline that all resources share. It returns nil for a nil Collector.
func (c *Collector) Timeline() *leap.Timeline {
	if c == nil {
		return nil
	}
	return c.line
}

// FirstSecond returns the index of the first second that this Collector counts. It returns 0 for a nil Collector.
func (c *Collector) FirstSecond() int64 {
	if c == nil {
		return 0
	}
	return c.Tree().View().Node().Since()
}

// History returns how long the records of a sealed second stay readable: [Options].Windows.History. It returns 0 for a
// nil Collector.
func (c *Collector) History() time.Duration {
	if c == nil {
		return 0
	}
	return c.shape.Options().History
}

// Histograms returns how long the histograms of a sealed second stay readable: [Options].Windows.Histograms. It returns
// 0 for a nil Collector.
func (c *Collector) Histograms() time.Duration {
	if c == nil {
		return 0
	}
	return c.shape.Options().Histograms
}

// Boundary describes a boundary between two seconds: the end of the last sealed second and the start of the open one.
// [Collector.Seal] returns it.
type Boundary struct {
	// Open is the index of the second that was open when Seal was called. All earlier seconds are sealed for every
	// view, and their records never change.
	Open int64
	// Now is the later of two readings: the reading of the timeline when Seal was called, and the start of the open
	// second. The start is later if another goroutine opened this second after Seal had read the clock.
	Now leap.Reading
	// Resources holds all resources that existed when Seal was called, oldest first. The caller must not change the
	// slice. A resource may be retired after Seal has returned. The [View.Node] of a retired resource stays readable.
	// The other methods of its Views return zeros until the name is used again.
	Resources []*Resource
}

// DurationsUnknown reports whether response times are unknown; see [Options]. If so, exporters omit response times.
func (c *Collector) DurationsUnknown() bool { return c != nil && c.opts.DurationsUnknown }

// OpenTelemetry reports whether exporters show inbound calls under the names of OpenTelemetry, too; see [Options].
func (c *Collector) OpenTelemetry() bool { return c != nil && c.opts.OpenTelemetry }

// Seal seals all seconds before the current one, for every resource, and returns the boundary. It also retires idle
// leaves, in a sweep (a scan of all leaves) that starts every ten seconds; see [Options].RetireAfter. The cost is
// linear in the number of leaves. Seal handles the leaves in small portions. After each portion, it releases all locks
// that calls need. A concurrent call therefore waits for one portion at most.
func (c *Collector) Seal() Boundary {
	if c == nil {
		return Boundary{}
	}
	return c.seal(c.line.Now())
}

// Resources returns all resources, oldest first. Unlike [Collector.Seal], Resources seals no second. The caller must
// not change the slice.
func (c *Collector) Resources() []*Resource {
	if c == nil {
		return nil
	}
	return c.all()
}

func (c *Collector) seal(now leap.Reading) Boundary {
	open := c.line.At(now)
	now = max(now, open.Start) // if another goroutine has opened the next second, open starts after now
	// c.all locks mu, and so does the registration of a resource or leaf. A resource or leaf that is registered after
	// c.all therefore starts in the second that is open, and has nothing to seal. If Seal is called again in the same
	// second, all leaves have sealed the earlier seconds already.
	resources := c.all()
	if c.sealed.Load() < open.Index {
		for _, r := range resources {
			for l := range r.leaves {
				l.Seal(now)
			}
		}
		c.sealed.Store(open.Index)
	}
	c.sweep(sealShare)
	return Boundary{Open: open.Index, Now: now, Resources: resources}
}

// Inbound returns the View of all inbound calls. The name of this View is [InboundTotal].
func (c *Collector) Inbound() View {
	if c == nil {
		return View{}
	}
	return View{&c.inbound}
}

// Health describes the state of a Collector: its size and its overflows.
type Health struct {
	// Resources is the number of resources, including [Other] once it is in use. Leaves is the number of combinations
	// of resource, origin and entrance. Inbound calls and nested calls of one combination have separate leaves. The
	// leaves take most of the memory. Entrances is the number of entrances.
	Resources, Leaves, Entrances int
	// Overflow counts the calls that were recorded for the resource [Other]. A call is recorded for Other for one of
	// three reasons: it has a new name while the table of resources is full, it needs a new leaf while there is no
	// memory for one, or its name is Other.
	Overflow int64
	// Unearned counts the calls that were recorded for a fallback resource, because their own name had no resource; see
	// [FallbackResource].
	Unearned int64
	// OriginOverflow counts the calls that were recorded for the origin [Other], because their resource had too many
	// origins. EntranceOverflow counts the calls that were recorded for the entrance Other, because there were too many
	// entrances. LeafOverflow counts the calls that needed a new leaf while there was no memory for a leaf. The calls
	// of LeafOverflow were recorded for the entrance Other, and usually also for the origin Other and the resource
	// Other.
	OriginOverflow, EntranceOverflow, LeafOverflow int64
	// TreeOverflow counts the calls that the call tree does not show below their caller. There are four reasons: the
	// call is nested too deeply, the tree is full, the node of the caller was retired, or the call was recorded for the
	// entrance [Other], because there was no memory for a leaf.
	TreeOverflow int64
	// Retired counts the resources that were retired because they were idle, including evicted ones.
	Retired int64
	// Limits is the number of limits, including dry runs.
	Limits int
	// MemoryReserved is the number of reserved bytes, and MaxMemory is [Options].MaxMemory. For the bytes in use see
	// [Collector.Memory].
	MemoryReserved, MaxMemory int64
	// Clock describes how the timeline follows the wall clock.
	Clock leap.Health
}

// Health returns the state of the Collector. It returns the zero Health for a nil Collector.
func (c *Collector) Health() Health {
	if c == nil {
		return Health{}
	}
	h := Health{
		Entrances:        len(*c.entrances.Load()),
		OriginOverflow:   c.overflow.origins.Load(),
		EntranceOverflow: c.overflow.entrances.Load(),
		LeafOverflow:     c.overflow.leaves.Load(),
		TreeOverflow:     c.overflow.tree.Load(),
		Unearned:         c.unearned.Load(),
		MemoryReserved:   c.reserved(),
		MaxMemory:        c.opts.MaxMemory,
		Clock:            c.line.Health(),
	}
	c.mu.Lock()
	h.Resources, h.Leaves = len(c.resources)-c.gone.resources, int(c.leafCount.Load())
	h.Retired, h.Limits = c.retired, len(c.limits.Load().list)
	c.mu.Unlock()
	if r := c.other.Load(); r != nil {
		h.Overflow = r.view.Snapshot(c.line.Now(), nil).Total.Total()
	}
	return h
}

// newRun returns a new number for [Collector.RunID]. The parameter began is the time when the Collector was created.
// The number consists of the milliseconds since 1970 and 12 random bits. The random bits distinguish processes of a
// fleet that start at the same time. The number has 53 bits, so a float64 represents it exactly.
func newRun(began time.Time) int64 { return began.UnixMilli()<<12&(1<<53-1) | rand.Int64N(1<<12) }

// RunID returns a number that identifies this Collector. Other Collectors, in this process or in another one, have
// other numbers. There is one exception: two Collectors that are created in the same millisecond have equal numbers if
// they draw the same 12 random bits. The number is an integer below 2^53. Compare it only for equality. RunID returns 0
// for a nil Collector.
func (c *Collector) RunID() int64 {
	if c == nil {
		return 0
	}
	return c.run
}
