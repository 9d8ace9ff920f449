package collector

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// DefaultMaxResources is how many resources a Collector keeps apart if Options do not say.
const DefaultMaxResources = 10_000

// Options configure a [Collector]. The zero value is sensible.
type Options struct {
	// MaxResources is how many resources are kept apart, [DefaultMaxResources] if zero. Calls of any further name
	// are counted for the resource [Other].
	MaxResources int
	// Windows shape the windows and the histogram of every resource.
	Windows node.Options
	// Now replaces the clock, for tests and for replaying the past. Both ends of a call are timed with it. It may be
	// called from several goroutines. Where it goes back, time stands still until it has caught up. It is called under
	// locks, so it must not use the Collector.
	Now func() time.Time
}

// Collector holds the statistics of a process, by resource.
//
// A Collector must be made with [New]. A nil *Collector is a switch that is off: its resources are nil, and record
// nothing. It is safe for concurrent use, and starts no goroutine.
type Collector struct {
	line  *leap.Timeline
	shape *node.Shape
	max   int

	byName sync.Map     // name, clean: *Resource
	count  atomic.Int64 // of the resources in byName; changes under mu
	other  atomic.Pointer[Resource]

	mu   sync.Mutex
	list []*Resource // in order of registration; append only
}

// New makes a Collector. The error names every option that is out of range.
func New(o Options) (*Collector, error) {
	if o.MaxResources == 0 {
		o.MaxResources = DefaultMaxResources
	}
	var errs []error
	if o.MaxResources < 1 {
		errs = append(errs, fmt.Errorf("collector: MaxResources is %d; at least 1 is needed", o.MaxResources))
	}
	var clock leap.Clock
	if o.Now != nil {
		clock = clockOf(o.Now)
	}
	line := leap.NewTimeline(clock)
	shape, err := node.NewShape(line, o.Windows)
	if err != nil {
		errs = append(errs, fmt.Errorf("collector: Windows: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Collector{line: line, shape: shape, max: o.MaxResources}, nil
}

// clockOf makes a pair of clocks of one that may go back.
func clockOf(now func() time.Time) leap.Clock {
	anchor := now()
	var latest atomic.Int64
	return leap.Clock{
		Wall: now,
		Mono: func() time.Duration {
			since := int64(now().Sub(anchor))
			for {
				last := latest.Load()
				if since <= last {
					return time.Duration(last)
				}
				if latest.CompareAndSwap(last, since) {
					return time.Duration(since)
				}
			}
		},
	}
}

// Resource returns the resource with this name, and makes it if need be. Keep the handle where you can: looking up
// a name costs about as much as recording a call.
//
// Any name is allowed. One that cannot be shown as it is (empty, longer than [MaxNameLength], not UTF-8) is changed as
// [CleanName] says. Once there are MaxResources resources, a new name gets the resource [Other].
func (c *Collector) Resource(name string) *Resource {
	if c == nil {
		return nil
	}
	if r, ok := c.byName.Load(name); ok {
		return r.(*Resource)
	}
	clean := CleanName(name)
	if clean != name {
		if r, ok := c.byName.Load(clean); ok {
			return r.(*Resource)
		}
	}
	// Once it is full no lock is taken any more: this is the way of a stranger's million names.
	if other := c.other.Load(); other != nil && (clean == Other || c.count.Load() >= int64(c.max)) {
		if r, ok := c.byName.Load(clean); ok { // somebody has just taken the last place for it
			return r.(*Resource)
		}
		return other
	}
	return c.register(clean)
}

func (c *Collector) register(name string) *Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.byName.Load(name); ok {
		return r.(*Resource)
	}
	if name == Other || c.count.Load() >= int64(c.max) {
		return c.overflow()
	}
	r := c.add(name)
	c.byName.Store(name, r)
	c.count.Add(1) // after it can be found: whoever sees the collector full finds every name in it
	return r
}

// overflow returns the resource for all names beyond the limit. Holds mu.
func (c *Collector) overflow() *Resource {
	if r := c.other.Load(); r != nil {
		return r
	}
	r := c.add(Other)
	c.other.Store(r)
	return r
}

// add makes a resource that begins in the second that is open. Holds mu, under which Seal opens a second and takes the
// list: so a resource is either sealed with the others, or begins after the seconds that were.
func (c *Collector) add(name string) *Resource {
	r := &Resource{name: name, line: c.line, stat: node.New(c.shape, c.line.Now())}
	c.list = append(c.list, r)
	return r
}

// Moment is a moment between two seconds, with the resources there were.
type Moment struct {
	// Open is the index of the second that was open. Every second before it is sealed, for every resource, and its
	// records never change again.
	Open int64
	// Resources are all resources there were, oldest first. The caller must not change the slice.
	Resources []*Resource
}

// Seal ends every second before the present one, for all resources at once, and returns the moment it did so.
func (c *Collector) Seal() Moment {
	if c == nil {
		return Moment{}
	}
	return c.seal(c.line.Now())
}

func (c *Collector) seal(now time.Duration) Moment {
	c.mu.Lock()
	open := c.line.At(now)
	now = max(now, open.Start) // another resource may have crossed into the next second since
	m := Moment{Open: open.Index, Resources: c.list[:len(c.list):len(c.list)]}
	c.mu.Unlock()
	for _, r := range m.Resources {
		r.stat.Seal(now)
	}
	return m
}

// Timeline is the line of seconds that all resources share. It is nil for a nil Collector.
func (c *Collector) Timeline() *leap.Timeline {
	if c == nil {
		return nil
	}
	return c.line
}

// Health is what a Collector knows about itself.
type Health struct {
	// Resources is how many resources there are, [Other] included once it is needed.
	Resources int
	// Overflow counts the calls that were recorded for [Other], whether for lack of room or because they asked for it.
	Overflow int64
	// Clock is what the timeline knows about the wall clock.
	Clock leap.Health
}

// Health tells how the Collector is. All is zero for a nil Collector.
func (c *Collector) Health() Health {
	if c == nil {
		return Health{}
	}
	h := Health{Clock: c.line.Health()}
	c.mu.Lock()
	h.Resources = len(c.list)
	c.mu.Unlock()
	if r := c.other.Load(); r != nil {
		h.Overflow = r.stat.Snapshot(c.line.Now(), nil).Total.Total()
	}
	return h
}
