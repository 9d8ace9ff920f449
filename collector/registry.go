package collector

import (
	"slices"

	"github.com/windowstat/windowstat/node"
)

// Resource returns the resource with this name, and makes it if need be. Keep the handle where you can: looking up
// a name costs about as much as recording a call.
//
// Any name is allowed. One that cannot be shown as it is (empty, longer than [MaxNameLength], not UTF-8) is changed as
// [CleanName] says. Once there are MaxResources resources, and none has been idle for long enough to be evicted, a new
// name gets the resource [Other], unless a limit names it.
func (c *Collector) Resource(name string) *Resource {
	if c == nil {
		return nil
	}
	return c.resourceFor(name, true)
}

// resourceFor finds or makes a resource whose name is given or, if not, earned.
func (c *Collector) resourceFor(name string, given bool) *Resource {
	if r, ok := c.byName.Load(name); ok {
		return r.(*Resource).asked(given)
	}
	clean := CleanName(name)
	// Once it is full mu is not taken any more: this is the way of a stranger's million names. That it is full is seen first, because
	// then every name that is registered is found.
	other := c.other.Load()
	beyond := other != nil && (clean == Other || c.full(clean) && !c.sweepIsDue() && !loaded(&c.idle).any(given))
	if r, ok := c.byName.Load(clean); ok {
		return r.(*Resource).asked(given)
	}
	if beyond {
		return other
	}
	// A full table is where sweeping helps. Each new name does a small share of it, so that none waits for a sweep of everything.
	if c.full(clean) {
		c.sweep(newShare)
	}
	// It ends, because each turn takes one of the idle resources, and register returns Other when there is none.
	for {
		if r := c.register(clean, given); r != nil {
			return r.asked(given)
		}
		c.evict(given)
	}
}

// asked notes that the name of the resource is given, if it is.
func (r *Resource) asked(given bool) *Resource {
	if given && !r.given.Load() {
		r.given.Store(true)
	}
	return r
}

// full reports whether the table is full for a resource with this name.
func (c *Collector) full(name string) bool {
	return (c.registered.Load() >= int64(c.opts.MaxResources) || c.leafCount.Load() >= int64(c.opts.MaxLeaves)) &&
		!c.limits.Load().names[name]
}

// register finds or makes a resource. It returns nil if the table is full, and evict might help.
func (c *Collector) register(name string, given bool) *Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.byName.Load(name); ok {
		return r.(*Resource)
	}
	if name == Other || c.full(name) {
		if name != Other && loaded(&c.idle).any(given) {
			return nil
		}
		if c.other.Load() == nil {
			c.other.Store(c.newResource(Other))
		}
		return c.other.Load()
	}
	c.overflowLimiters.mu.Lock() // until calls of the name that another resource counts find this one
	defer c.overflowLimiters.mu.Unlock()
	r := c.newResource(name)
	c.byName.Store(name, r)
	c.registered.Add(1) // after it can be found: a goroutine that sees the collector full finds every name in it
	return r
}

// newResource makes a resource. Holds mu, under which Seal takes the list: so a resource is either sealed with the
// others, or begins after the seconds that were.
func (c *Collector) newResource(name string) *Resource {
	v := node.NewView(c.shape, c.line.Now())
	r := &Resource{name: name}
	r.generation.init(c, v, r, func() *generation { return &r.now().generation })
	r.sole.init(c, v, r, r.findOrigin(""))
	r.kept.Store(c.overflowLimiters.remove(name))
	r.shared.Store(name == Other)
	r.setLimits(c.limits.Load().forName(name))
	c.resources = append(c.resources, r)
	return r
}

// target is the name of the resource that counts a call, and whether that is another one than the name's own.
func (c *Collector) target(o *options) (name string, shared bool) {
	if o.countedAs == "" {
		return o.name, false
	}
	clean := CleanName(o.name)
	if _, there := c.byName.Load(clean); there || clean == CleanName(o.countedAs) || c.limits.Load().names[clean] {
		return o.name, false
	}
	return o.countedAs, true
}

// find finds the leaf of a call, below an entry or, if up is nil, below an entrance; and makes it if need be. The way of
// calls that were made before is three look-ups, without a lock. So is that of names beyond the limits, with some more.
func (c *Collector) find(up *frame, name string, o *options) *leaf {
	var at *TreeNode
	if up != nil {
		at = up.leaf.treeNode
	} else {
		at = c.entrance(o.entrance)
	}
	if at != nil {
		if p := at.child(name); p != nil {
			if l := p.leaf(o.key(up)); l != nil && (o.earned || l.resource.given.Load()) {
				return l
			}
		}
	}
	for {
		r := c.resourceFor(name, !o.earned || name != o.name)
		s := c.location(r, up, o)
		if s.leaf == nil || c.edgeMissing(up, s.leaf) {
			if s.leaf = c.makeLeaf(r, up, o); s.leaf == nil {
				continue // r was retired in this moment
			}
		}
		if up != nil && up.leaf.treeNode.child(s.leaf.resource.name) != s.leaf.treeNode {
			up.leaf.treeNode.cutOff()
			c.overflow.tree.Add(1)
		}
		if s.over != nil {
			s.over.Add(1)
		}
		return s.leaf
	}
}

// edgeMissing reports whether the tree should show where a call comes from, and does not. It never will if the tree is
// full or too deep there, if the caller was retired meanwhile, or if there was no leaf left in the caller's context.
func (c *Collector) edgeMissing(up *frame, l *leaf) bool {
	if up == nil {
		return false // made with the leaf
	}
	at := up.leaf.treeNode
	return at.child(l.resource.name) != l.treeNode && !at.dead.Load() && at.entrance == l.treeNode.entrance &&
		c.edges.Load() < int64(c.opts.MaxLeaves) && up.depth(MaxDepth)+1 < MaxDepth
}

// makeLeaf finds or makes the leaf of a call and its node in the tree. It returns nil if the resource was retired.
func (c *Collector) makeLeaf(r *Resource, up *frame, o *options) *leaf {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.dead.Load() {
		return nil
	}
	// What was found without the lock may have changed: another call may have made the leaf, or taken the last one.
	s := c.location(r, up, o)
	if s.leaf == nil {
		tn := r.treeNode(s.entrance)
		if tn == nil {
			tn = c.newTreeNode(r, s.entrance)
		}
		s.leaf = c.newLeaf(tn, s.key)
	}
	switch {
	// The tree gets an edge for each way in which a node is reached. One that cannot be had leaves the node below its entrance, so that every
	// node is in the tree.
	case up == nil:
		s.leaf.treeNode.entrance.adopt(s.leaf.treeNode)
	case c.edgeMissing(up, s.leaf):
		up.leaf.treeNode.adopt(s.leaf.treeNode)
		c.edges.Add(1)
	case s.leaf.treeNode.entrance != up.leaf.treeNode.entrance || up.leaf.treeNode.dead.Load():
		s.leaf.treeNode.entrance.adopt(s.leaf.treeNode) // it has no caller there
	}
	return s.leaf
}

// newTreeNode makes the node of a resource in the context of an entrance. Holds mu.
func (c *Collector) newTreeNode(r *Resource, entrance string) *TreeNode {
	e := c.entrance(entrance)
	if e == nil {
		e = &TreeNode{name: entrance}
		e.generation.init(c, node.NewView(c.shape, c.line.Now()), nil, func() *generation { return c.entrance(entrance).View().generation })
		e.entrance = e
		c.root.adopt(e)
		all := append(slices.Clone(*c.entrances.Load()), e)
		c.entrances.Store(&all)
	}
	tn := &TreeNode{name: r.name, entrance: e}
	tn.generation.init(c, node.NewView(c.shape, c.line.Now()), r, func() *generation { return r.now().treeNode(entrance).View().generation })
	r.addTreeNode(tn)
	e.members++
	return tn
}

// newLeaf makes a leaf, and adds it to all views before anybody can record into it. Holds mu.
func (c *Collector) newLeaf(tn *TreeNode, k leafKey) *leaf {
	l := &leaf{leafKey: k, resource: tn.resource, treeNode: tn}
	l.own.leaf = l
	l.Init(c.shape, c.line.Now())
	// The order matters to readers, who take no lock of the collector: views have the leaf before calls can reach it, so no view ever has
	// less than what was counted.
	l.resource.addOrigin(k.origin)
	for _, v := range l.views() {
		v.Add(&l.Statistic)
	}
	if m := l.resource.kept.Load(); m != nil {
		m.setCounters(l)
	}
	c.leafCount.Add(1)
	tn.addLeaf(l)
	return l
}
