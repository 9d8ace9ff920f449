package collector

import (
	"context"
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
)

// leaf is where calls are recorded: the statistic of one resource, called by one origin, in the context of one entrance. The
// statistic is part of it, and comes first, so that who has the leaf has it in the cache line that a call needs.
type leaf struct {
	node.Statistic
	leafKey
	retired  atomic.Bool // changes under the collector's mu
	resource *Resource
	treeNode *TreeNode
	own      place // of calls without a reservation
}

// place is where a call is counted: at a leaf, and in limiters for the name that it would have if there were capacity.
type place struct {
	leaf     *leaf
	reserved *reservation // nil for nearly all calls
}

// leafKey tells the leaves of one tree node apart.
type leafKey struct {
	origin  string
	inbound bool
	nested  bool // below another entry, so that the entrance does not count it
}

// key tells the leaf of a call from others of its tree node.
func (o *options) key(up *frame) leafKey { return leafKey{o.origin, o.inbound, up != nil || o.nested} }

// views are all views that the leaf is a part of. Holds the collector's mu.
func (l *leaf) views() []*node.View {
	c := l.resource.c
	views := l.ownViews()
	if !l.nested {
		views = append(views, c.root.view, l.treeNode.entrance.view)
	}
	if l.inbound {
		views = append(views, c.inbound.view)
	}
	return views
}

// ownViews are those of the resource: in all, in the context, by the origin. Holds the collector's mu.
func (l *leaf) ownViews() []*node.View {
	r := l.resource
	views := []*node.View{r.view, l.treeNode.view}
	if o := r.origin(l.origin); o.view != r.view {
		views = append(views, o.view)
	}
	return views
}

// enter lets a call enter, or returns the error of a limit that refused it, or errMoved.
func (l *leaf) enter(ctx context.Context, e *Entry, o *options) error {
	e.at = &l.own
	switch m := l.resource.limiter.Load(); {
	case m != nil:
		return m.admit(ctx, e, o)
	case o.passed:
		e.call = l.Resume(l.resource.c.line.Now(), o.n)
	default:
		e.call = l.Enter(l.resource.c.line.Now(), o.n)
	}
	if e.call.IsZero() {
		return errMoved
	}
	return nil
}

// block counts n refused calls, or returns errMoved.
func (l *leaf) block(reason string, n int64) error {
	if !l.Block(l.resource.c.line.Now(), n) {
		return errMoved
	}
	l.resource.blocks.add(reason, n)
	return nil
}

// location is the leaf that counts a call, existing or to be made, within the limits of [Options].
type location struct {
	entrance string
	key      leafKey
	leaf     *leaf         // nil if there is none yet
	over     *atomic.Int64 // counts the calls beyond a limit; nil for a call within all limits
}

// location finds the leaf of a call. It changes nothing, and takes no lock.
func (c *Collector) location(r *Resource, up *frame, o *options) location {
	s := location{entrance: o.entrance, key: o.key(up)}
	if s.entrance = cleanName(o.entrance, DefaultEntrance); !c.hasEntrance(s.entrance) {
		s.entrance, s.over = Other, &c.overflow.entrances
	}
	if s.key.origin = cleanName(o.origin, ""); !r.hasOrigin(s.key.origin) {
		s.key.origin, s.over = Other, &c.overflow.origins
	}
	if s.leaf = r.leaf(s.entrance, s.key); s.leaf == nil && c.leafCount.Load() >= int64(c.opts.MaxLeaves) {
		s.entrance, s.over = Other, &c.overflow.leaves
		if !c.limits.Load().origins[s.key.origin] { // so that no origin escapes a limit
			s.key.origin = Other
		}
		s.leaf = r.leaf(s.entrance, s.key)
	}
	return s
}

// entrance finds an entrance, nil if there is none. They are few, and the busiest often came first.
func (c *Collector) entrance(name string) *TreeNode {
	for _, e := range *c.entrances.Load() {
		if e.name == name {
			return e
		}
	}
	return nil
}

// hasEntrance reports whether there is an entrance with this name, or one may be added.
func (c *Collector) hasEntrance(name string) bool {
	if name == Other || c.entrance(name) != nil {
		return true
	}
	n := len(*c.entrances.Load())
	if c.entrance(Other) != nil {
		n--
	}
	return n < c.opts.MaxEntrances
}
