package collector

import (
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// View reads the calls of a resource, of one of its origins or entrances, of a node of the call tree, or of all inbound
// traffic. Get one from [Resource.View], [Resource.Origin], [TreeNode.View] or [Collector.Inbound], and keep it as long as
// you like: it stands for a name. A name that was retired because it was idle, and is used again, begins anew, and the View
// reads the new statistics. In between there is nothing of the name, and the View is idle; so all views of a name read the same,
// whenever they were taken.
//
// The zero View, and that of a nil *Resource or a nil *Collector, is idle, and so is the view of an origin until that
// calls. A View is a small value and safe for concurrent use. Each method reads the clock once, takes a lock of each leaf
// for a short time, and costs in proportion to the leaves.
type View struct{ generation *generation }

// Window reads the second window: the bucket that is open and those before it, together a second.
func (v View) Window() node.Window {
	return read(v, (*node.View).Window)
}

// Minute reads the minute window, which ends with the second that is open.
func (v View) Minute() node.Window {
	return read(v, (*node.View).Minute)
}

// PassQPS is how many calls passed in the second window, per second. It costs less than Window, and allocates nothing.
func (v View) PassQPS() float64 {
	return read(v, (*node.View).PassQPS)
}

// InFlight is how many calls are in flight.
func (v View) InFlight() int64 {
	return read(v, func(n *node.View, _ leap.Reading) int64 { return n.InFlight() })
}

// Snapshot reads the totals, the calls in flight, the last complete second and the peak of the minute. If h is not nil it is
// set to the histogram of all response times as of the same moment.
func (v View) Snapshot(h *node.Histogram) node.Snapshot {
	n, now := v.read()
	if n == nil {
		if h != nil {
			*h = node.Histogram{}
		}
		return node.Snapshot{}
	}
	return n.Snapshot(now, h)
}

// Seconds are the records of the sealed seconds that start in [from, to) by the wall clock, ascending, idle ones included.
// They begin where the history does, see [Collector.History], or where the view does. Seconds that the wall clock skipped
// do not exist, and a name that it repeated is there once, see [leap.Timeline].
func (v View) Seconds(from, to time.Time) []node.MetricNode {
	return read(v, func(n *node.View, now leap.Reading) []node.MetricNode {
		line := v.generation.c.line
		return n.AppendSeconds(nil, line.IndexAtOrAfter(from), min(line.IndexAtOrAfter(to), line.At(now).Index))
	})
}

// Last is the records of the last n sealed seconds, ascending, idle ones included; fewer where the history or the view is
// shorter, or the wall clock repeated a name.
func (v View) Last(n int) []node.MetricNode {
	return read(v, func(x *node.View, now leap.Reading) []node.MetricNode {
		open := v.generation.c.line.At(now).Index
		return x.AppendSeconds(nil, open-int64(max(n, 0)), open)
	})
}

// Histogram sets h to the histogram of the response times in the sealed seconds that start in [from, to) by the wall clock.
// It reports whether all of them are in it: none is still open, or older than the minute window.
func (v View) Histogram(from, to time.Time, h *node.Histogram) (whole bool) {
	n, now := v.read()
	if n == nil {
		*h = node.Histogram{}
		return true
	}
	line := v.generation.c.line
	line.At(now)
	return n.Histogram(line.IndexAtOrAfter(from), line.IndexAtOrAfter(to), h)
}

// Node is the view by index of the timeline, for ways out that read many views as of one [Moment]. It does not follow the
// name: ask again rather than keep it. While there is nothing of this name it is what the View was taken from, retired, or nil if
// there was nothing then; so that of a [Moment]'s resource is never nil.
func (v View) Node() *node.View {
	g := v.generation
	if g == nil {
		return nil
	}
	if now := g.latest(); now != nil {
		return now.view
	}
	if r := g.resource; r != nil && g == &r.sole && r.origins.Load() != nil { // its view is that of all origins now
		return node.NewView(g.c.shape, g.c.line.Now())
	}
	return g.view
}

// read reads what f does of the view, or nothing if it is idle.
func read[T any](v View, f func(*node.View, leap.Reading) T) (x T) {
	if n, now := v.read(); n != nil {
		x = f(n, now)
	}
	return x
}

// read returns the view to read, nil for one that is idle, and the present reading of the clock.
func (v View) read() (n *node.View, now leap.Reading) {
	if g := v.generation.latest(); g != nil && g.view != nil {
		n, now = g.view, g.c.line.Now()
	}
	return n, now
}

// generation is what a [View] reads, from when its name is first used until it is retired, and what finds the one that has the name
// after it. Only dead changes.
type generation struct {
	c        *Collector
	view     *node.View
	dead     atomic.Bool        // retired; changes under the collector's mu
	resource *Resource          // the resource itself, or that of an origin or a context; nil for others
	next     func() *generation // finds the one that has the name now, which may be nil or dead; nil for one that is never retired
}

// init sets what does not change.
func (g *generation) init(c *Collector, v *node.View, r *Resource, next func() *generation) {
	g.c, g.view, g.resource, g.next = c, v, r, next
}

// absent is the view of a name of which there is nothing: it reads what next finds whenever it is read.
func (c *Collector) absent(next func() *generation) View {
	g := &generation{c: c, next: next}
	g.dead.Store(true)
	return View{g}
}

// latest is the generation that has the name now, nil if there is none, or for nil. It is the same whichever generation of the name is
// asked.
func (g *generation) latest() *generation {
	if g == nil || !g.dead.Load() {
		return g
	}
	if next := g.next(); next != nil && !next.dead.Load() {
		return next
	}
	return nil
}
