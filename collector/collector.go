package collector

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// Collector holds the statistics of a process: by resource, origin and entrance, and the call tree.
//
// A Collector must be made with [New]. A nil *Collector is a switch that is off: its resources are nil, and record
// nothing. It is safe for concurrent use, and starts no goroutine.
//
// Locks are taken in the order setting, sweeping, mu, limiter, view, statistic. Recording takes none of the first three
// unless a limit applies.
type Collector struct {
	line  *leap.Timeline
	shape *node.Shape
	opts  Options

	began time.Time // by the wall clock
	run   int64     // see RunID

	byName     sync.Map     // name, clean: *Resource
	registered atomic.Int64 // resources in byName, but those given in Options; changes under mu
	other      atomic.Pointer[Resource]
	entrances  atomic.Pointer[[]*TreeNode] // in the order in which they came; replaced under mu, not changed

	root             *TreeNode
	inbound          generation
	limits           atomic.Pointer[ruleSet]
	overflowLimiters *overflowLimiters // of names that another resource records

	leafCount, edges, swept atomic.Int64 // leaves; edges of the tree below entrances; second of the last whole sweep
	sealed                  atomic.Int64 // the second up to which all leaves are sealed, at least

	overflow struct{ origins, entrances, leaves, tree atomic.Int64 }
	unearned atomic.Int64 // calls
	running  slots
	idle     atomic.Pointer[idleResources] // replaced, not changed

	setting  sync.Mutex // held by who sets limits
	sweeping sweeper

	mu        portionLock // guards what follows, and registration
	resources []*Resource // in order of registration; a new slice when some are retired
	gone      struct {    // retired, and still in the list of resources, and in the views of all
		resources int
		leaves    int64
	}
	retired int64      // resources
	tidying sync.Mutex // held while retired ones are taken out of these; taken before mu

	publishing sync.Mutex // guards published, which is replaced or appended to
	published  []*publication
}

// New makes a Collector. The error names every option that is out of range.
func New(o Options) (*Collector, error) {
	var clock leap.Clock
	if o.Now != nil {
		clock = clockOf(o.Now)
	}
	clock.After = o.After
	return newOn(leap.NewTimeline(clock), o)
}

// newOn is New on a timeline.
func newOn(line *leap.Timeline, o Options) (*Collector, error) {
	shape, err := o.complete(line)
	if err != nil {
		return nil, err
	}
	c := &Collector{line: line, shape: shape, opts: o}
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
			r.stays = true
			r.given.Store(true)
			c.byName.Store(name, r)
		}
	}
	return c, nil
}

// clockOf makes a pair of clocks of one that may go back.
func clockOf(now func() time.Time) leap.Clock {
	anchor := now()
	var mu sync.Mutex
	var latest time.Duration
	return leap.Clock{
		Wall: now,
		Mono: func() time.Duration {
			since := now().Sub(anchor)
			mu.Lock()
			defer mu.Unlock()
			latest = max(latest, since)
			return latest
		},
	}
}

// Timeline is the line of seconds that all resources share. It is nil for a nil Collector.
func (c *Collector) Timeline() *leap.Timeline {
	if c == nil {
		return nil
	}
	return c.line
}

// History is how long sealed seconds can be read.
func (c *Collector) History() time.Duration {
	if c == nil {
		return 0
	}
	return c.shape.Options().History
}

// Histograms is how long the histograms of sealed seconds can be read; 0 for a nil Collector.
func (c *Collector) Histograms() time.Duration {
	if c == nil {
		return 0
	}
	return c.shape.Options().Histograms
}

// Moment is a moment between two seconds, with the resources there were.
type Moment struct {
	// Open is the index of the second that was open. Every second before it is sealed, for every view, and its records
	// never change again.
	Open int64
	// Now is the reading of the timeline that was taken.
	Now leap.Reading
	// Resources are all resources there were, oldest first. The caller must not change the slice. One may have been retired since: its
	// [View.Node] goes on, and all else of it is idle.
	Resources []*Resource
}

// DurationsUnknown reports whether response times are unknown, see [Options]; exporters leave them out then.
func (c *Collector) DurationsUnknown() bool { return c != nil && c.opts.DurationsUnknown }

// Seal ends every second before the present one, for all resources at once, and returns the moment it did so. Now and
// then it retires idle leaves, see [Options].RetireAfter. It costs in proportion to all leaves, and nobody waits for more than some of
// them.
func (c *Collector) Seal() Moment {
	if c == nil {
		return Moment{}
	}
	return c.seal(c.line.Now())
}

// Resources are all resources there are, oldest first, for what seals no second or has done so: see [Collector.Seal]. The caller
// must not change the slice.
func (c *Collector) Resources() []*Resource {
	if c == nil {
		return nil
	}
	return c.all()
}

func (c *Collector) seal(now leap.Reading) Moment {
	open := c.line.At(now)
	now = max(now, open.Start) // another goroutine may have opened the next second since
	// A resource that is registered later begins after the seconds that are sealed here. So does a leaf, which is made with mu held.
	// And so the second time in a second there is nothing to do.
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
	return Moment{Open: open.Index, Now: now, Resources: resources}
}

// Inbound reads everything that came in from outside, [InboundTotal].
func (c *Collector) Inbound() View {
	if c == nil {
		return View{}
	}
	return View{&c.inbound}
}

// Health is the state of a Collector: what it holds, and what overflowed.
type Health struct {
	// Resources is how many resources there are, [Other] included once it is needed. Leaves is how many combinations of
	// resource, origin and entrance there are, which is what takes memory; Entrances is how many of these.
	Resources, Leaves, Entrances int
	// Overflow counts the calls that were recorded for the resource [Other], whether because the table was full or because they
	// asked for it.
	Overflow int64
	// Unearned counts the calls that were counted for another resource, because their name had not earned one, see
	// [CountedAs].
	Unearned int64
	// OriginOverflow, EntranceOverflow and LeafOverflow count the calls that were counted for [Other] origins and
	// entrances, because there were too many for their resource, too many in all, or too many combinations.
	OriginOverflow, EntranceOverflow, LeafOverflow int64
	// TreeOverflow counts the calls that the call tree does not show, because they are nested too deep or the tree is full.
	TreeOverflow int64
	// Retired counts the resources that were retired because they were idle, evicted ones included.
	Retired int64
	// Limits is how many limits there are, dry runs included.
	Limits int
	// Clock is how the timeline follows the wall clock.
	Clock leap.Health
}

// Health reports the state of the Collector. All is zero for a nil Collector.
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

// newRun makes the number of a run that begins now: milliseconds since 1970, and 12 random bits, because a fleet may start at
// once. It has 53 bits, so a float64 has it exactly.
func newRun(began time.Time) int64 { return began.UnixMilli()<<12&(1<<53-1) | rand.Int64N(1<<12) }

// RunID is a number that tells this Collector's seconds from those of every other one: of the processes before and after it, of
// other instances, of replicas. It is an integer below 2^53, to be compared for equality only.
//
// A nil Collector has 0.
func (c *Collector) RunID() int64 {
	if c == nil {
		return 0
	}
	return c.run
}
