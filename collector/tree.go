package collector

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// Root is the root of the call tree, and the name of the view of the whole process: Sentinel's machine-root. What is
	// called below another entry is not counted in it, nor in an entrance: a request counts once.
	Root = "machine-root"
	// InboundTotal is the name of the view of everything that came in from outside: Sentinel's ENTRY_NODE.
	InboundTotal = "__total_inbound_traffic__"
	// DefaultEntrance is the entrance of calls that name none, and of those that enter by a [Resource] without a context.
	DefaultEntrance = "_default"
)

// TreeNode is a node of the call tree: the root, an entrance below it, or a resource in the context of an entrance
// (Sentinel's DefaultNode) below each entry that it was called from. So a resource has one node in each context, which is
// the child of all its callers, and its own if it calls itself: the tree is a graph, and a program that prints it must
// stop somewhere. A node is safe for concurrent use, and shows the tree as it is when asked. A nil *TreeNode, as a nil
// Collector has, is idle and has no children.
type TreeNode struct {
	generation // with the resource, nil for the root and for entrances
	name       string
	entrance   *TreeNode // nil for the root; its own for an entrance

	children sync.Map                 // name: *TreeNode
	first    atomic.Pointer[leaf]     // one of the leaves, often the only one
	leaves   atomic.Pointer[leafSet]  // all of them; replaced, not changed
	cut      atomic.Bool              // there are calls below it that are not in the tree
	caller   atomic.Pointer[TreeNode] // one of the parents, often the only one; as they were when it was set

	// Guarded by the collector's mu:
	parents []*TreeNode
	members int // of an entrance: nodes in its context
}

// Tree returns the root of the call tree. It is nil for a nil Collector.
func (c *Collector) Tree() *TreeNode {
	if c == nil {
		return nil
	}
	return c.root
}

// Name is the name of the resource or of the entrance, or [Root].
func (t *TreeNode) Name() string {
	if t == nil {
		return ""
	}
	return t.name
}

// View reads the node: the resource in this context, everything that enters by the entrance, or everything that enters the
// process.
func (t *TreeNode) View() View {
	if t == nil {
		return View{}
	}
	return View{&t.generation}
}

// Children are the nodes that were called from this one, by name. If there were calls below it that the tree does not
// show, because they were nested too deep or the tree is full, the last child is [Other], with a View that is idle.
func (t *TreeNode) Children() []*TreeNode {
	if t == nil {
		return nil
	}
	var list []*TreeNode
	for _, child := range t.children.Range {
		list = append(list, child.(*TreeNode))
	}
	slices.SortFunc(list, func(a, b *TreeNode) int { return strings.Compare(a.name, b.name) })
	if t.cut.Load() {
		list = append(list, &TreeNode{name: Other})
	}
	return list
}

// child finds a node that was called from this one before.
func (t *TreeNode) child(name string) *TreeNode {
	if x, ok := t.children.Load(name); ok {
		return x.(*TreeNode)
	}
	return nil
}

// below reports whether the node is called from another one.
func (t *TreeNode) below(caller *TreeNode) bool {
	if t.caller.Load() == caller {
		return true
	}
	if caller.child(t.name) != t {
		return false
	}
	t.caller.CompareAndSwap(nil, caller)
	return true
}

// adopt makes a node the child of this one. Holds the collector's mu.
func (t *TreeNode) adopt(child *TreeNode) {
	if _, there := t.children.LoadOrStore(child.name, child); !there {
		child.parents = append(child.parents, t)
	}
}

// cutOff notes that there are calls below the node that the tree does not show.
func (t *TreeNode) cutOff() {
	if !t.cut.Load() {
		t.cut.Store(true)
	}
}

// unlink takes the node out of the tree. Its children may still be called in the same context, so they move below the entrance, which goes
// with the last node in its context. Holds the collector's mu.
func (t *TreeNode) unlink() {
	for _, p := range t.parents {
		p.children.CompareAndDelete(t.name, t)
		if p.resource != nil {
			t.c.edges.Add(-1)
		}
	}
	for name, child := range t.children.Range {
		c := child.(*TreeNode)
		c.parents = slices.DeleteFunc(c.parents, func(p *TreeNode) bool { return p == t })
		t.children.Delete(name)
		t.c.edges.Add(-1)
		if c != t {
			t.entrance.adopt(c)
		}
	}
	t.parents = nil
	t.dead.Store(true)
	e := t.entrance
	if e == t {
		return
	}
	if e.members--; e.members == 0 {
		e.unlink()
		all := filter(*e.c.entrances.Load(), func(x *TreeNode) bool { return x != e })
		e.c.entrances.Store(&all)
	}
}

// leafSet is the leaves of a tree node. Few are found faster by looking at each.
type leafSet struct {
	list  []*leaf
	byKey map[leafKey]*leaf // nil while the list is short
}

// fewLeaves is how many leaves are looked at one by one.
const fewLeaves = 8

// leaf finds a leaf of this node, nil if there is none.
func (t *TreeNode) leaf(k leafKey) *leaf {
	if l := t.first.Load(); l == nil || l.leafKey == k {
		return l
	}
	all := t.leaves.Load()
	if all.byKey != nil {
		return all.byKey[k]
	}
	for _, l := range all.list {
		if l.leafKey == k {
			return l
		}
	}
	return nil
}

// setLeaves replaces the leaves. Holds the collector's mu.
func (t *TreeNode) setLeaves(list []*leaf) {
	all := &leafSet{list: list}
	if len(list) > fewLeaves {
		all.byKey = make(map[leafKey]*leaf, len(list))
		for _, l := range list {
			all.byKey[l.leafKey] = l
		}
	}
	t.leaves.Store(all)
	if len(list) > 0 {
		t.first.Store(list[0])
	} else {
		t.first.Store(nil)
	}
}

// listLeaves is all leaves.
func (t *TreeNode) listLeaves() []*leaf { return loaded(&t.leaves).list }

// addLeaf adds a leaf. Holds the collector's mu.
func (t *TreeNode) addLeaf(l *leaf) { t.setLeaves(append(slices.Clip(t.listLeaves()), l)) }

// The tree nodes of a resource, one in each context, and its origins. They are few, and looked up without a lock.

// treeNodes are the nodes of the resource in the call tree, sorted by entrance.
func (r *Resource) treeNodes() []*TreeNode { return loaded(&r.contexts) }

// loaded is what a pointer points to, the zero value for nil.
func loaded[T any](p *atomic.Pointer[T]) (x T) {
	if v := p.Load(); v != nil {
		x = *v
	}
	return x
}

// leaves yields all leaves of the resource.
func (r *Resource) leaves(yield func(*leaf) bool) {
	for _, t := range r.treeNodes() {
		for _, l := range t.listLeaves() {
			if !yield(l) {
				return
			}
		}
	}
}

// treeNode is the node in the context of an entrance, nil if there is none.
func (r *Resource) treeNode(entrance string) *TreeNode {
	for _, p := range r.treeNodes() {
		if p.entrance.name == entrance {
			return p
		}
	}
	return nil
}

// leaf finds a leaf, nil if there is none.
func (r *Resource) leaf(entrance string, k leafKey) *leaf {
	if p := r.treeNode(entrance); p != nil {
		return p.leaf(k)
	}
	return nil
}

// addTreeNode adds a node. Holds the collector's mu.
func (r *Resource) addTreeNode(p *TreeNode) {
	list := append(slices.Clone(r.treeNodes()), p)
	slices.SortFunc(list, func(a, b *TreeNode) int { return strings.Compare(a.entrance.name, b.entrance.name) })
	r.contexts.Store(&list)
}

// dropTreeNodes removes the nodes without leaves. Holds the collector's mu.
func (r *Resource) dropTreeNodes() {
	list := filter(r.treeNodes(), func(t *TreeNode) bool { return !t.view.Empty() })
	if len(list) == len(r.treeNodes()) {
		return
	}
	for _, t := range r.treeNodes() {
		if t.view.Empty() {
			t.unlink()
		}
	}
	r.contexts.Store(&list)
}
