package collector

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// Root is the name of the root of the call tree, and of the View of the whole process: Sentinel's machine-root. The
	// root and the entrances count only outermost calls, so a request with nested calls counts once.
	Root = "machine-root"
	// InboundTotal is the name of the View of all inbound calls: Sentinel's ENTRY_NODE.
	InboundTotal = "__total_inbound_traffic__"
	// DefaultEntrance is the entrance of outermost calls without the option [Entrance], and of calls through a
	// [Resource] without a context.
	DefaultEntrance = "_default"
)

// TreeNode is a node of the call tree. There are three kinds: the root, an entrance below the root, and a resource
// below an entrance (Sentinel's DefaultNode).
//
// A resource has one node for each entrance through which it was called. Below this entrance, the node is a child of
// the nodes of all callers of the resource. If the resource calls itself, the node is its own child. The tree is
// therefore a graph, and a program that prints it must limit the depth.
//
// A TreeNode is safe for concurrent use, and its methods show the current tree. A nil *TreeNode has no calls and no
// children. [Collector.Tree] of a nil Collector returns nil.
//
//	machine-root
//	  web                       entrance
//	    GET /cart               resource, called through web
//	      load user             called from GET /cart and from GET /pay: one node, two parents
//	    GET /pay
//	      load user
//	  jobs                      another entrance
//	    load user               another node of the same resource
//
// The first call from one node to another creates the edge between the two nodes: see makeLeaf. Later calls between
// these nodes only look up the edge. Retirement removes nodes that have no leaves left, and makes their children direct
// children of the entrance: see unlink. (A leaf records the calls of one resource, origin and entrance.)
type TreeNode struct {
	generation // the field generation.resource is nil for the root and for entrances
	name       string
	entrance   *TreeNode // entrance above the node, or the node itself if it is an entrance; nil for the root

	children sync.Map                 // *TreeNode by name
	first    atomic.Pointer[leaf]     // first leaf of the node, usually the only leaf; or nil
	leaves   atomic.Pointer[leafSet]  // all leaves of the node; replaced, never modified
	cut      atomic.Bool              // calls below the node are missing in the tree; set by cutOff
	caller   atomic.Pointer[TreeNode] // cache of isChildOf: a parent, usually the only one, or nil

	// The collector's mu guards the next two fields.
	parents []*TreeNode
	members int // number of nodes below an entrance, at any depth; 0 for other nodes
}

// Tree returns the root of the call tree, or nil for a nil Collector.
func (c *Collector) Tree() *TreeNode {
	if c == nil {
		return nil
	}
	return c.root
}

// Name returns the name of the resource or of the entrance, or [Root].
func (t *TreeNode) Name() string {
	if t == nil {
		return ""
	}
	return t.name
}

// View returns the View of the node. The View of a resource's node has all calls of the resource whose chain of calls
// began at the entrance. The View of an entrance has only the outermost calls of these chains. The View of the root has
// all outermost calls of the process.
func (t *TreeNode) View() View {
	if t == nil {
		return View{}
	}
	return View{&t.generation}
}

// Children returns the children of the node, sorted by name. If the tree lacks calls below the node, because they were
// nested too deeply or the tree is full, the last child is [Other], with an idle View.
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

// child returns the child with the given name, or nil.
func (t *TreeNode) child(name string) *TreeNode {
	if x, ok := t.children.Load(name); ok {
		return x.(*TreeNode)
	}
	return nil
}

// isChildOf reports whether the node is a child of caller. In that case it also stores caller in the cache t.caller, if
// the cache is empty.
func (t *TreeNode) isChildOf(caller *TreeNode) bool {
	if t.caller.Load() == caller {
		return true
	}
	if caller.child(t.name) != t {
		return false
	}
	t.caller.CompareAndSwap(nil, caller)
	return true
}

// adopt adds child to the children of t, and t to the parents of child. If t has a child with this name already, adopt
// does nothing. The collector's mu must be held.
func (t *TreeNode) adopt(child *TreeNode) {
	if _, there := t.children.LoadOrStore(child.name, child); !there {
		child.parents = append(child.parents, t)
	}
}

// cutOff records that the tree lacks calls below the node.
func (t *TreeNode) cutOff() {
	if !t.cut.Load() {
		t.cut.Store(true)
	}
}

// unlink removes the node from the tree. The children of the node become children of the entrance. If the node was the
// last one below its entrance, unlink removes the entrance, too. The collector's mu must be held.
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

// leafSet holds the leaves of a tree node. While there are few leaves, a scan of the list is faster than a map.
type leafSet struct {
	list  []*leaf
	byKey map[leafKey]*leaf // nil while the list has at most fewLeaves elements
}

// fewLeaves is the maximum length of leafSet.list without the map leafSet.byKey.
const fewLeaves = 8

// leaf returns the leaf of this node with the key k, or nil.
func (t *TreeNode) leaf(k leafKey) *leaf {
	// In most cases the node has no leaf, or its first leaf has the key k.
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

// setLeaves replaces the leaves of the node. The collector's mu must be held.
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

// listLeaves returns all leaves of the node.
func (t *TreeNode) listLeaves() []*leaf { return loaded(&t.leaves).list }

// addLeaf adds a leaf to the node. The collector's mu must be held.
func (t *TreeNode) addLeaf(l *leaf) { t.setLeaves(append(slices.Clip(t.listLeaves()), l)) }

// The methods below manage the tree nodes of a resource, one for each entrance. A resource has few tree nodes, so a
// lookup scans the list. Lookups take no lock.

// treeNodes returns the nodes of the resource, sorted by entrance.
func (r *Resource) treeNodes() []*TreeNode { return loaded(&r.nodes) }

// loaded returns a copy of the value that p refers to, or the zero value if p contains nil.
func loaded[T any](p *atomic.Pointer[T]) (x T) {
	if v := p.Load(); v != nil {
		x = *v
	}
	return x
}

// leaves iterates over all leaves of the resource.
func (r *Resource) leaves(yield func(*leaf) bool) {
	for _, t := range r.treeNodes() {
		for _, l := range t.listLeaves() {
			if !yield(l) {
				return
			}
		}
	}
}

// treeNode returns the node below the entrance with this name, or nil.
func (r *Resource) treeNode(entrance string) *TreeNode {
	for _, p := range r.treeNodes() {
		if p.entrance.name == entrance {
			return p
		}
	}
	return nil
}

// leaf returns the leaf with the key k below the entrance with this name, or nil. r may be nil.
func (r *Resource) leaf(entrance string, k leafKey) *leaf {
	if r == nil {
		return nil
	}
	if p := r.treeNode(entrance); p != nil {
		return p.leaf(k)
	}
	return nil
}

// addTreeNode adds p to the nodes of the resource. The collector's mu must be held.
func (r *Resource) addTreeNode(p *TreeNode) {
	list := append(slices.Clone(r.treeNodes()), p)
	slices.SortFunc(list, func(a, b *TreeNode) int { return strings.Compare(a.entrance.name, b.entrance.name) })
	r.nodes.Store(&list)
}

// dropTreeNodes removes the nodes of the resource that have no leaves. The collector's mu must be held.
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
	r.nodes.Store(&list)
}
