package collector

import (
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// View reads the calls of a resource, of one of its origins or entrances, of a node of the call tree, or of all inbound
// calls. Get a View from [Resource.View], [Resource.Origin], [TreeNode.View] or [Collector.Inbound]. A caller may keep
// a View for ever, because the View follows the name. The statistics of an idle name may be retired. At the next call,
// the name gets new statistics that start from zero, and the View then reads the new statistics. Between retirement and
// the next call, all numbers of the View are 0. All Views of one name are equivalent, whenever they were created.
//
// Three other kinds of Views have only zeros, too: the zero View, the View of a nil *Resource or a nil *Collector, and
// the View of an origin before its first call.
//
// A View is a small value and safe for concurrent use. Each method reads the clock once, takes a lock of each leaf for
// a short time, and costs time linear in the number of leaves. (A leaf records the calls of one resource, origin and
// entrance.)
type View struct{ generation *generation }

// Window returns the second window, which is one second long: the open bucket and the buckets before it.
func (v View) Window() node.Window {
	return read(v, (*node.View).Window)
}

// Minute returns the minute window: the open second and the 59 seconds before it.
func (v View) Minute() node.Window {
	return read(v, (*node.View).Minute)
}

// PassQPS returns the passes per second in the window that [View.Window] describes. PassQPS costs less than Window, and
// allocates nothing.
func (v View) PassQPS() float64 {
	return read(v, (*node.View).PassQPS)
}

// InFlight returns the number of calls in flight.
func (v View) InFlight() int64 {
	return read(v, func(n *node.View, _ leap.Reading) int64 { return n.InFlight() })
}

// Snapshot returns the totals, the calls in flight, the last complete second, and the peak: the highest number of
// passes in a sliding second of the last minute. If h is not nil, Snapshot sets h to the histogram of all response
// times at the same instant.
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

// Seconds returns the records of the sealed seconds that start in [from, to) by the wall clock, in ascending order,
// including idle seconds. There are no records of seconds that are older than the history (see [Collector.History]), or
// older than the view. If the wall clock skips seconds, there are no records of these seconds. If the wall clock
// repeats a second, there is one record with the name of this second; see [leap.Timeline].
func (v View) Seconds(from, to time.Time) []node.MetricNode {
	return read(v, func(n *node.View, now leap.Reading) []node.MetricNode {
		line := v.generation.c.line
		return n.AppendSeconds(nil, line.IndexAtOrAfter(from), min(line.IndexAtOrAfter(to), line.At(now).Index))
	})
}

// Last returns the records of the last n sealed seconds, in ascending order, including idle seconds. It returns fewer
// than n if the history or the age of the view is shorter than n seconds, or if the wall clock has repeated seconds.
func (v View) Last(n int) []node.MetricNode {
	return read(v, func(x *node.View, now leap.Reading) []node.MetricNode {
		open := v.generation.c.line.At(now).Index
		return x.AppendSeconds(nil, open-int64(max(n, 0)), open)
	})
}

// Histogram sets h to the histogram of the response times in the sealed seconds that start in [from, to) by the wall
// clock. It reports whether h covers the whole interval. The result is false if a second of the interval is still open,
// or if its histogram is no longer kept; see [Collector.Histograms]. If v has no statistics, the histogram is empty,
// and the result is true.
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

// Node returns the [node.View] that v reads now. The methods of a node.View take indexes of the timeline. A node.View
// is for exporters that read many views at one [Boundary]. If the name is retired and then used again, it gets another
// node.View, so call Node again rather than keep its result. While the name is retired, Node returns the node.View that
// the name had when v was created, or nil if it had none then. For the View of a resource in [Boundary].Resources, the
// result is never nil.
func (v View) Node() *node.View {
	g := v.generation
	if g == nil {
		return nil
	}
	if now := g.latest(); now != nil {
		return now.view
	}
	// g belongs to the empty origin of a resource that has other origins by now. g.view is the view of the whole
	// resource, so it includes the calls of the other origins. Return an empty view instead.
	if r := g.resource; r != nil && g == &r.defaultOrigin && r.origins.Load() != nil {
		return node.NewView(g.c.shape, g.c.line.Now())
	}
	return g.view
}

// read calls f with the node.View of v and the current reading of the clock, and returns the result of f. If the name
// of v is not in use, read returns the zero value.
func read[T any](v View, f func(*node.View, leap.Reading) T) (x T) {
	if n, now := v.read(); n != nil {
		x = f(n, now)
	}
	return x
}

// read returns the node.View that v reads now, and the current reading of the clock. If the name of v is not in use, n
// is nil.
func (v View) read() (n *node.View, now leap.Reading) {
	if g := v.generation.latest(); g != nil && g.view != nil {
		n, now = g.view, g.c.line.Now()
	}
	return n, now
}

// A name gets a new node.View each time it is used again after retirement. A generation holds one of these node.Views,
// and the function next, which looks up the current generation of the name. After init, only the field dead changes.
//
//	View -> generation 1 (dead) -- next() --> generation 2 (the current one)
//	        view: last counts                 view: counts since the name was used again
//
// The function next returns the current generation directly, even if the name had other generations in between. A View
// that was kept through many generations therefore needs only one lookup, and keeps only one generation in memory.
type generation struct {
	c    *Collector
	view *node.View
	dead atomic.Bool // retired; changed with the collector's mu held
	// The view counts calls of this resource: all its calls, or only the calls of an origin or of a tree node. The
	// field is nil for the root, the entrances, all inbound calls and dry runs.
	resource *Resource
	// The function next looks up the name, and returns its current generation, which may be nil or dead. next is nil
	// for the root, for all inbound calls and for dry runs, because these generations never become dead.
	next func() *generation
}

// init sets all fields except dead.
func (g *generation) init(c *Collector, v *node.View, r *Resource, next func() *generation) {
	g.c, g.view, g.resource, g.next = c, v, r, next
}

// absent returns a View of a name that may have no generation now. Each read of the View calls next to get the current
// generation.
func (c *Collector) absent(next func() *generation) View {
	g := &generation{c: c, next: next}
	g.dead.Store(true)
	return View{g}
}

// latest returns the current generation of the name. It returns nil if the name is not in use, or if g is nil. latest
// returns the same result for all generations of one name.
func (g *generation) latest() *generation {
	if g == nil || !g.dead.Load() {
		return g
	}
	if next := g.next(); next != nil && !next.dead.Load() {
		return next
	}
	return nil
}
