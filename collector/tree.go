package collector

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
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
// (Sentinel's DefaultNode) below each entry that it was called from. So a resource has one node in each context, which
// is the child of all its callers, and its own if it calls itself: the tree is a graph, and whoever prints it must stop
// somewhere. A node is safe for concurrent use, and shows the tree as it is when asked.
type TreeNode struct {
	name     string
	view     *node.View
	resource *Resource // nil for the root and for entrances
	entrance *TreeNode // nil for the root; its own for an entrance

	children sync.Map                          // name: *TreeNode
	leaves   atomic.Pointer[map[leafKey]*leaf] // replaced, not changed
	cut      atomic.Bool                       // there are calls below it that are not in the tree

	// Guarded by the collector's mu:
	parents map[*TreeNode]struct{}
	dead    bool // not in the tree any more
}

// Tree returns the root of the call tree. It is nil for a nil Collector.
func (c *Collector) Tree() *TreeNode {
	if c == nil {
		return nil
	}
	return c.root
}

// Name is the name of the resource or of the entrance, or [Root].
func (t *TreeNode) Name() string { return t.name }

// View has the node's readings: of the resource in this context, of everything that enters by the entrance, of
// everything that enters the process.
func (t *TreeNode) View() *node.View { return t.view }

// Children are the nodes that were called from this one, by name. If there were calls below it that the tree does not
// show, because they were nested too deep or the tree is full, the last child is [Other], with a nil View.
func (t *TreeNode) Children() []*TreeNode {
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

// adopt makes a node the child of this one. Holds the collector's mu.
func (t *TreeNode) adopt(child *TreeNode) {
	t.children.Store(child.name, child)
	if child.parents == nil {
		child.parents = map[*TreeNode]struct{}{}
	}
	child.parents[t] = struct{}{}
}

// unlink takes the node out of the tree, and returns how many edges below entrances that were. Holds the collector's mu.
func (t *TreeNode) unlink() (edges int64) {
	for p := range t.parents {
		p.children.CompareAndDelete(t.name, t)
		if p.resource != nil {
			edges++
		}
	}
	for name, child := range t.children.Range {
		delete(child.(*TreeNode).parents, t)
		t.children.Delete(name)
		edges++
	}
	t.parents, t.dead = nil, true
	return edges
}

// hasChildren reports whether anything was called from the node.
func (t *TreeNode) hasChildren() bool {
	for range t.children.Range {
		return true
	}
	return false
}

// leaf finds a leaf of this place, nil if there is none.
func (t *TreeNode) leaf(k leafKey) *leaf {
	if all := t.leaves.Load(); all != nil {
		return (*all)[k]
	}
	return nil
}

// setLeaf adds a leaf, or removes it if l is nil. Holds the collector's mu.
func (t *TreeNode) setLeaf(k leafKey, l *leaf) {
	all := map[leafKey]*leaf{}
	if old := t.leaves.Load(); old != nil {
		all = maps.Clone(*old)
	}
	if l == nil {
		delete(all, k)
	} else {
		all[k] = l
	}
	t.leaves.Store(&all)
}
