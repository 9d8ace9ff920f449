package collector

import (
	"slices"

	"github.com/windowstat/windowstat/node"
)

// Resource returns the resource with this name, and registers it if necessary. Keep the handle where possible: a lookup
// costs about as much as recording a call.
//
// Any name is allowed. A name that is empty, longer than [MaxNameLength] or not valid UTF-8 is changed as described at
// [CleanName]. If there are MaxResources resources and none has been idle for long enough to be evicted, a new name
// shares the resource [Other], unless a limit names it.
func (c *Collector) Resource(name string) *Resource {
	if c == nil {
		return nil
	}
	return c.resourceFor(name, true)
}

// A call finds its leaf in these steps. The first three need no lock, and suffice for all calls but the first of a
// leaf:
//
//	leafFor       the child of the caller's tree node, or of the entrance, and its leaf      3 lookups
//	resourceFor   byName                                                                     1 lookup
//	location      the leaf within the bounds of Options: names beyond them become Other      3 lookups
//	register      with mu: a new resource, if the table has a free slot
//	evict         without mu: retire the longest-idle resource, then try again
//	makeLeaf      with mu: the steps of location again, then a new tree node, leaf and edge
//
// A step that finds its result changed by another goroutine starts over: the resource was retired (makeLeaf returns
// nil), or the leaf was (leaf.enter returns errMoved).

// resourceFor looks up or registers a resource. If given is true, the name is from code and becomes given; if false, it
// is from a request and only earned.
func (c *Collector) resourceFor(name string, given bool) *Resource {
	if r, ok := c.byName.Load(name); ok {
		return r.(*Resource).markGiven(given)
	}
	clean := CleanName(name)
	// If the table is full, this path takes no lock: a client may send a million made-up names. Check whether the table
	// is full before the lookup: the lookup then finds every name that filled the table.
	other := c.other.Load()
	beyond := other != nil && (clean == Other || c.full(clean) && !c.sweepIsDue() && !loaded(&c.idle).any(given))
	if r, ok := c.byName.Load(clean); ok {
		return r.(*Resource).markGiven(given)
	}
	if beyond {
		return other
	}
	// A sweep may free slots in a full table. Each new name does a small share of it, so no call waits for a complete
	// sweep.
	if c.full(clean) {
		c.sweep(newShare)
	}
	// The loop ends: each round takes one of the idle resources, and register returns Other if there is none.
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

// full reports whether the table has no slot for a new resource with this name.
func (c *Collector) full(name string) bool {
	return (c.registered.Load() >= int64(c.opts.MaxResources) || !c.fits(c.sizes.resource+c.sizes.leaf)) &&
		!c.limits.Load().names[name]
}

// register looks up or creates a resource. It returns nil if the table is full and evict may help.
func (c *Collector) register(name string, given bool) *Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Another goroutine may have registered it since the lookup.
	if r, ok := c.byName.Load(name); ok {
		return r.(*Resource)
	}
	if name == Other || c.full(name) {
		if name != Other && loaded(&c.idle).any(given) {
			return nil
		}
		return c.ensureOther()
	}
	// Another resource may have recorded calls of this name so far. Hold the lock until byName has the new resource, so
	// that all later calls of the name find it.
	c.overflowLimiters.mu.Lock()
	defer c.overflowLimiters.mu.Unlock()
	r := c.newResource(name)
	c.byName.Store(name, r)
	c.registered.Add(1) // after Store: a goroutine that sees a full table must find every name in it
	return r
}

// ensureOther returns the resource Other, and creates it if necessary. mu must be held.
func (c *Collector) ensureOther() *Resource {
	if c.other.Load() == nil {
		c.other.Store(c.newResource(Other))
	}
	return c.other.Load()
}

// newResource creates a resource. mu must be held. Seal reads the list of resources under mu, so a resource is either
// sealed with the others, or starts after the sealed seconds.
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

// target returns the name of the resource that records a call, and whether it differs from the call's own name.
func (c *Collector) target(o *options) (name string, shared bool) {
	if o.fallback == "" {
		return o.name, false
	}
	// The own name wins if it has a resource, or if a limit is for exactly this name.
	clean := CleanName(o.name)
	if _, there := c.byName.Load(clean); there || clean == CleanName(o.fallback) || c.limits.Load().names[clean] {
		return o.name, false
	}
	return o.fallback, true
}

// leafFor returns the leaf of a call whose caller is up, or of an outermost call if up is nil, and creates it if
// necessary. For an existing leaf it takes three lookups and no lock. Names beyond the limits cost a few lookups more,
// and no lock either.
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
		// The tree lacks the edge and will not get it: show that calls are missing there.
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

// edgeMissing reports whether the tree lacks the edge from the caller to the leaf's node and should get it. The tree
// does not get the edge if it is full or too deep, if the caller was retired in the meantime, or if the leaf is in
// another context than the caller.
func (c *Collector) edgeMissing(up *frame, l *leaf) bool {
	if up == nil {
		return false // created with the leaf
	}
	at := up.leaf.treeNode
	return at.child(l.resource.name) != l.treeNode && !at.dead.Load() && at.entrance == l.treeNode.entrance &&
		c.fitsMore(c.sizes.edge) && up.depth(MaxDepth)+1 < MaxDepth
}

// makeLeaf looks up or creates the leaf of a call and its tree node. It returns nil if the resource was retired.
func (c *Collector) makeLeaf(r *Resource, up *frame, o *options) *leaf {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.dead.Load() {
		return nil
	}
	// Look up the leaf again: since the lookup without the lock, another call may have created it or used the last
	// slot.
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
	// The tree gets an edge for each caller of a node. If the tree cannot get the edge, the node becomes a child of its
	// entrance, so that every node is in the tree.
	case up == nil:
		s.leaf.treeNode.entrance.adopt(s.leaf.treeNode)
	case c.edgeMissing(up, s.leaf):
		up.leaf.treeNode.adopt(s.leaf.treeNode)
		c.edges.Add(1)
	case s.leaf.treeNode.entrance != up.leaf.treeNode.entrance || up.leaf.treeNode.dead.Load():
		s.leaf.treeNode.entrance.adopt(s.leaf.treeNode) // the node has no caller in this context
	}
	return s.leaf
}

// newTreeNode creates the node of a resource in the context of an entrance. mu must be held.
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

// newLeaf creates a leaf and adds it to all views before a call can record into it. mu must be held.
func (c *Collector) newLeaf(tn *TreeNode, k leafKey, spare bool) *leaf {
	l := &leaf{leafKey: k, resource: tn.resource, treeNode: tn, spare: spare}
	l.own.leaf = l
	l.Init(c.shape, c.line.Now())
	if c.opts.OpenTelemetry && k.inbound {
		l.SplitByCode()
	}
	// The order matters to readers, which take no lock of the collector: the views include the leaf before calls can
	// reach it, so no view ever shows less than was counted.
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
