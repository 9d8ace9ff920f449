package collector

import (
	"context"
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
)

// leaf records the calls with one combination of resource, origin and entrance. Inbound and other calls have separate
// leaves, and so do nested and outermost calls. The Statistic must be the first field, so that the fields that a call
// needs are in the first cache line of the leaf.
type leaf struct {
	node.Statistic
	leafKey
	retired atomic.Bool // changes only while the collector's mu is held
	// spare is true for a spare leaf of the resource Other: see spareLeaves. Its memory is reserved before the leaf
	// exists. If a call needs a new leaf and there is no memory for one, a spare leaf records the call.
	spare    bool
	resource *Resource
	treeNode *TreeNode
	own      place // Entry.at points to own if the call has no reservation
}

// place holds the leaf that records a call, and the call's reservation if it has one. A reservation lists the limiters
// (the states of limits) to update when the call ends.
type place struct {
	leaf     *leaf
	reserved *reservation // nil for nearly all calls
}

// leafKey identifies a leaf within its tree node.
type leafKey struct {
	origin  string
	inbound bool
	nested  bool // the leaf records calls that have a caller; the views of the entrance and the root omit these calls
}

// key returns the key of the leaf that records a call with the options o. up is the frame (the context) of the caller,
// or nil.
func (o *options) key(up *frame) leafKey { return leafKey{o.origin, o.inbound, up != nil || o.nested} }

// views returns all views that include the leaf. (A view is a sum of leaves.) The collector's mu must be held.
//
//	view                        includes the leaf
//	of the resource             always
//	of the origin               always; while only the empty origin exists, this is the view of the resource
//	of the tree node            always; this view is the sum of the resource's leaves with this entrance
//	of the entrance, the root   if the leaf is for outermost calls, so that a chain of calls counts once
//	of all inbound calls        if the leaf is for inbound calls
//
// A call writes to one leaf only. A view sums its leaves when it is read.
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

// ownViews returns the views of the leaf's resource that include the leaf: the view of the resource, of the tree node,
// and of the origin if the origin has its own view. The collector's mu must be held.
func (l *leaf) ownViews() []*node.View {
	r := l.resource
	views := []*node.View{r.view, l.treeNode.view}
	if o := r.origin(l.origin); o.view != r.view {
		views = append(views, o.view)
	}
	return views
}

// enter records the start of a call in the leaf, and sets e to the Entry of the call. If a limit refuses the call,
// enter returns the error of the limit. If the leaf cannot record the call, enter returns errMoved.
func (l *leaf) enter(ctx context.Context, e *Entry, o *options) error {
	e.at = &l.own
	// If the resource has no limit, this load of a nil pointer is the only cost of limits for a call.
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

// block counts n refused calls. It returns errMoved if the leaf was retired.
func (l *leaf) block(reason string, n int64) error {
	if !l.Block(l.resource.c.line.Now(), n) {
		return errMoved
	}
	l.resource.blocks.add(reason, n)
	return nil
}

// location describes the leaf that records a call, within the bounds of [Options]. The leaf may not exist yet.
type location struct {
	resource *Resource // resource that records the call; nil if it is Other and does not exist yet
	entrance string
	key      leafKey
	leaf     *leaf         // nil if the leaf does not exist yet
	spare    bool          // a new leaf must use the memory that is reserved for spare leaves
	over     *atomic.Int64 // overflow counter to increment, or nil if no name becomes Other
}

// location looks up the leaf of a call to r. up is the frame of the caller, or nil. location changes nothing and takes
// no lock.
//
// It applies the bounds in this order:
//
//  1. If the entrance is new and there are too many entrances, the entrance becomes [Other].
//  2. If the origin is new and the resource has too many origins, the origin becomes Other.
//  3. If the leaf is new and there is no memory for it, the entrance becomes Other. If no limit has this origin,
//     the origin becomes Other, too.
//  4. If r has no leaf with the names that result from step 3, the resource Other records the call. The memory of the
//     leaves that Other needs for such calls is always reserved. The limits of r still apply to the call: see
//     limiter.reserve.
func (c *Collector) location(r *Resource, up *frame, o *options) location {
	s := location{resource: r, entrance: o.entrance, key: o.key(up)}
	if s.entrance = cleanName(o.entrance, DefaultEntrance); !c.hasEntrance(s.entrance) {
		s.entrance, s.over = Other, &c.overflow.entrances
	}
	if s.key.origin = cleanName(o.origin, ""); !r.hasOrigin(s.key.origin) {
		s.key.origin, s.over = Other, &c.overflow.origins
	}
	if s.leaf = r.leaf(s.entrance, s.key); s.leaf != nil || c.leafFits(r) {
		return s
	}
	s.entrance, s.over = Other, &c.overflow.leaves
	// Keep an origin that has a limit, so that the limit counts the call.
	if !c.limits.Load().origins[s.key.origin] {
		s.key.origin = Other
	}
	if s.leaf = r.leaf(s.entrance, s.key); s.leaf == nil {
		s.resource, s.spare = c.other.Load(), true
		s.leaf = s.resource.leaf(s.entrance, s.key)
	}
	return s
}

// entrance returns the entrance with the given name, or nil. A linear scan is fast, because there are few entrances and
// the busiest are usually registered first.
func (c *Collector) entrance(name string) *TreeNode {
	for _, e := range *c.entrances.Load() {
		if e.name == name {
			return e
		}
	}
	return nil
}

// hasEntrance reports whether an entrance with this name exists or may be added.
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
