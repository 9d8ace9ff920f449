package collector

import (
	"slices"

	"github.com/windowstat/windowstat/node"
)

// Resource returns the resource with this name, and registers it if necessary. Keep the handle where possible: a lookup
// costs about as much as recording a call.
//
// Any name is allowed. [CleanName] changes names that are empty, longer than [MaxNameLength] or not valid UTF-8. If
// there are [Options].MaxResources resources already, or no memory for another, a new name evicts an idle resource. If
// no resource has been idle for long enough, Resource returns the resource [Other]. A name in a limit always gets its
// own resource.
func (c *Collector) Resource(name string) *Resource {
	if c == nil {
		return nil
	}
	return c.resourceFor(name, true)
}

// A call finds its leaf (the record of one combination of resource, origin and entrance) in these steps. The first
// three need no lock, and suffice if the leaf exists:
//
//	leafFor       in the call tree: from the node of the caller, or of the entrance, to the leaf   3 lookups
//	resourceFor   by name: the resource in byName                                                  1 lookup
//	location      the leaf within the bounds of Options: names beyond the bounds become Other      3 lookups
//	register      with mu: a new resource, if the table has a free slot
//	evict         with mu in short portions: retire the longest-idle resource, then call register again
//	makeLeaf      with mu: the steps of location again, then a new tree node, leaf and edge
//
// Another goroutine may retire the resource or the leaf between two steps. If the resource was retired, makeLeaf
// returns nil. If the leaf was retired, leaf.enter returns errMoved. In both cases the search starts over.

// resourceFor looks up or registers a resource. The parameter given is true if the name comes from code, and false if
// it comes from a request. If given is true, a resource whose name came from a request is marked as given.
func (c *Collector) resourceFor(name string, given bool) *Resource {
	if r, ok := c.byName.Load(name); ok {
		return r.(*Resource).markGiven(given)
	}
	clean := CleanName(name)
	// A client may send a million made-up names. The code therefore returns Other without a lock if the table is full,
	// no sweep is due, and the name cannot evict a resource. Check first whether the table is full, and look up the
	// name afterwards: register stores a name before it counts the name. If the table is full, the lookup therefore
	// finds every name that has a slot. In the other order, the lookup could miss a name that took the last slot
	// between the two steps.
	other := c.other.Load()
	useOther := other != nil && (clean == Other || c.full(clean) && !c.sweepIsDue() && !loaded(&c.idle).any(given))
	if r, ok := c.byName.Load(clean); ok {
		return r.(*Resource).markGiven(given)
	}
	if useOther {
		return other
	}
	// If the table is full, a sweep may free slots. The current call does a small share of the sweep, and the next call
	// with a new name continues it, so no call waits for a complete sweep.
	if c.full(clean) {
		c.sweep(newShare)
	}
	// The loop terminates, because each round removes one entry from the list of idle resources. When the list has no
	// resource that the new name may evict, register returns the resource Other.
	for {
		if r := c.register(clean, given); r != nil {
			return r.markGiven(given)
		}
		c.evict(given)
	}
}

// markGiven marks the name of the resource as given if given is true, and returns the resource.
func (r *Resource) markGiven(given bool) *Resource {
	if given && !r.given.Load() {
		r.given.Store(true)
	}
	return r
}

// full reports whether the table has no slot or no memory for a new resource with this name. Names in limits always
// have a slot.
func (c *Collector) full(name string) bool {
	return (c.registered.Load() >= int64(c.opts.MaxResources) || !c.fits(c.sizes.resource+c.sizes.leaf)) &&
		!c.limits.Load().names[name]
}

// register looks up or creates the resource with this name. If the table is full and evict may free a slot for the
// name, register returns nil. If the table is full and evict cannot free a slot, register returns the resource Other.
// The parameter given is true for a name from code.
func (c *Collector) register(name string, given bool) *Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Another goroutine may have registered the name since resourceFor looked it up.
	if r, ok := c.byName.Load(name); ok {
		return r.(*Resource)
	}
	if name == Other || c.full(name) {
		if name != Other && loaded(&c.idle).any(given) {
			return nil
		}
		return c.ensureOther()
	}
	// So far the name may have been an overflowing name: another resource recorded its calls, and overflowLimiters had
	// its limiter. newResource takes over this limiter. Hold the lock of overflowLimiters until byName has the
	// resource. A concurrent call then finds either the old limiter in overflowLimiters, or the resource in byName.
	c.overflowLimiters.mu.Lock()
	defer c.overflowLimiters.mu.Unlock()
	r := c.newResource(name)
	c.byName.Store(name, r)
	c.registered.Add(1) // must come after Store: see resourceFor
	return r
}

// ensureOther returns the resource Other, and creates it if necessary. mu must be held.
func (c *Collector) ensureOther() *Resource {
	if c.other.Load() == nil {
		c.other.Store(c.newResource(Other))
	}
	return c.other.Load()
}

// newResource creates a resource. mu must be held, because Seal reads the list of resources under mu. A Seal that reads
// the list after newResource also seals the seconds of the new resource. A Seal that has read the list earlier need not
// do so: the first second of the new resource begins at or after the boundary up to which this Seal seals.
func (c *Collector) newResource(name string) *Resource {
	v := node.NewView(c.shape, c.line.Now())
	r := &Resource{name: name}
	r.generation.init(c, v, r, func() *generation { return &r.now().generation })
	r.defaultOrigin.init(c, v, r, r.findOrigin(""))
	r.limiterState.Store(c.overflowLimiters.remove(name))
	r.fallback.Store(name == Other)
	r.setLimits(c.limits.Load().forName(name))
	c.resources = append(c.resources, r)
	return r
}

// target returns the name of the resource that records a call with the options o. shared reports whether this name is
// from the option [FallbackResource], and not the call's own name.
func (c *Collector) target(o *options) (name string, shared bool) {
	if o.fallback == "" {
		return o.name, false
	}
	// Record the call for its own name if that name has a resource, equals the name of the fallback resource, or is in
	// a limit without a *.
	clean := CleanName(o.name)
	if _, there := c.byName.Load(clean); there || clean == CleanName(o.fallback) || c.limits.Load().names[clean] {
		return o.name, false
	}
	return o.fallback, true
}

// leafFor returns the leaf that records a call for the resource with the given name, and creates the leaf if necessary.
// up is the frame (the context) of the caller, or nil for an outermost call. If the leaf exists, leafFor needs three
// lookups and no lock. If a name is beyond the bounds of Options, leafFor needs a few more lookups, but no lock either.
// leafFor also sets o.home.
func (c *Collector) leafFor(up *frame, name string, o *options) *leaf {
	o.home = nil
	var at *TreeNode
	if up != nil {
		at = up.leaf.treeNode
	} else {
		at = c.entrance(o.entrance)
	}
	if at != nil {
		if p := at.child(name); p != nil {
			if l := p.leaf(o.key(up)); l != nil && (o.fromRequest || l.resource.given.Load()) {
				return l
			}
		}
	}
	for {
		r := c.resourceFor(name, !o.fromRequest || name != o.name)
		s := c.location(r, up, o)
		if s.leaf == nil || c.edgeMissing(up, s.leaf) {
			if s.leaf = c.makeLeaf(r, up, o); s.leaf == nil {
				continue // r was retired concurrently
			}
		}
		// If the condition below is true, the tree has no edge from the caller's node to the leaf's node, and cannot
		// get one. cutOff marks the caller's node, so that the tree shows that calls are missing below it.
		if up != nil && up.leaf.treeNode.child(s.leaf.resource.name) != s.leaf.treeNode {
			up.leaf.treeNode.cutOff()
			c.overflow.tree.Add(1)
		}
		if s.over != nil {
			s.over.Add(1)
		}
		if s.leaf.resource != r {
			o.home = r
		}
		return s.leaf
	}
}

// edgeMissing reports whether the tree lacks the edge from the caller's node to the node of the leaf l, and can get
// this edge. The parameter up is the frame of the caller, or nil for an outermost call. The tree cannot get the edge in
// three cases: the tree is full or too deep, the caller's node was retired, or the leaf belongs to another entrance
// than the caller.
func (c *Collector) edgeMissing(up *frame, l *leaf) bool {
	if up == nil {
		return false // an outermost call has no caller, so it needs no edge
	}
	at := up.leaf.treeNode
	return at.child(l.resource.name) != l.treeNode && !at.dead.Load() && at.entrance == l.treeNode.entrance &&
		c.fitsMore(c.sizes.edge) && up.depth(MaxDepth)+1 < MaxDepth
}

// makeLeaf looks up or creates the leaf of a call to r, and its tree node. It returns nil if r was retired. up is the
// frame of the caller, or nil.
func (c *Collector) makeLeaf(r *Resource, up *frame, o *options) *leaf {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.dead.Load() {
		return nil
	}
	// Look up the leaf again. Since leafFor looked it up without the lock, another call may have created it, or may
	// have added the last origin, entrance or leaf that the bounds allow.
	s := c.location(r, up, o)
	if s.leaf == nil {
		if s.resource == nil {
			s.resource = c.ensureOther()
		}
		tn := s.resource.treeNode(s.entrance)
		if tn == nil {
			tn = c.newTreeNode(s.resource, s.entrance)
		}
		s.leaf = c.newLeaf(tn, s.key, s.spare)
	}
	switch {
	// The tree gets an edge from the node of each caller to the node of the leaf. If the caller's node belongs to
	// another entrance or was retired, the leaf's node becomes a child of its own entrance instead. If the tree is full
	// or too deep, the tree gets no edge, and leafFor marks the caller's node with cutOff.
	case up == nil:
		s.leaf.treeNode.entrance.adopt(s.leaf.treeNode)
	case c.edgeMissing(up, s.leaf):
		up.leaf.treeNode.adopt(s.leaf.treeNode)
		c.edges.Add(1)
	case s.leaf.treeNode.entrance != up.leaf.treeNode.entrance || up.leaf.treeNode.dead.Load():
		s.leaf.treeNode.entrance.adopt(s.leaf.treeNode) // the tree gets no edge from this caller
	}
	return s.leaf
}

// newTreeNode creates the node of a resource below the entrance with the given name. It also creates the entrance if
// there is no entrance with this name. mu must be held.
func (c *Collector) newTreeNode(r *Resource, entrance string) *TreeNode {
	e := c.entrance(entrance)
	if e == nil {
		e = &TreeNode{name: entrance}
		e.generation.init(
			c,
			node.NewView(c.shape, c.line.Now()),
			nil,
			func() *generation { return c.entrance(entrance).View().generation },
		)
		e.entrance = e
		c.root.adopt(e)
		all := append(slices.Clone(*c.entrances.Load()), e)
		c.entrances.Store(&all)
	}
	tn := &TreeNode{name: r.name, entrance: e}
	tn.generation.init(
		c,
		node.NewView(c.shape, c.line.Now()),
		r,
		func() *generation { return r.now().treeNode(entrance).View().generation },
	)
	r.addTreeNode(tn)
	e.members++
	return tn
}

// newLeaf creates the leaf with the key k in the tree node tn. It adds the leaf to all views before a call can record
// into it. The parameter spare means that the leaf uses the memory that is reserved for spareLeaves. mu must be held.
func (c *Collector) newLeaf(tn *TreeNode, k leafKey, spare bool) *leaf {
	l := &leaf{leafKey: k, resource: tn.resource, treeNode: tn, spare: spare}
	l.own.leaf = l
	l.Init(c.shape, c.line.Now())
	if c.opts.OpenTelemetry && k.inbound {
		l.SplitByCode()
	}
	// Add the leaf to the views before calls can find the leaf. A view then includes every call that the leaf records,
	// although readers take no lock of the collector.
	l.resource.addOrigin(k.origin)
	for _, v := range l.views() {
		v.Add(&l.Statistic)
	}
	if m := l.resource.limiterState.Load(); m != nil {
		m.setCounters(l)
	}
	c.leafCount.Add(1)
	if spare {
		c.sparesInUse.Add(1)
	}
	tn.addLeaf(l)
	return l
}
