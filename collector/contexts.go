package collector

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
)

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

// dropTreeNodes removes the nodes without leaves, and returns them. Holds the collector's mu.
func (r *Resource) dropTreeNodes() (gone []*TreeNode) {
	for _, t := range r.treeNodes() {
		if t.view.Empty() {
			gone = append(gone, t)
		}
	}
	if len(gone) > 0 {
		list := filter(r.treeNodes(), func(t *TreeNode) bool { return !t.view.Empty() })
		r.contexts.Store(&list)
	}
	return gone
}

// Origin reads the calls by one origin. The empty origin is that of calls without one.
func (r *Resource) Origin(name string) View {
	if r == nil {
		return View{}
	}
	if o := r.now().origin(name); o != nil {
		return View{o}
	}
	none := &life{c: r.c, kind: ofOrigin, resource: r, key: name} // which finds the first one
	none.dead.Store(true)
	return View{none}
}

// origin is an origin of this resource, also if that was retired; nil if there is none.
func (r *Resource) origin(name string) *life {
	if all := loaded(&r.origins); all != nil {
		return all[name]
	}
	if name == "" {
		return &r.sole
	}
	return nil
}

// hasOrigin reports whether the resource has this origin, or room for it. The empty one always has.
func (r *Resource) hasOrigin(name string) bool {
	if name == "" || name == Other || r.origin(name) != nil {
		return true
	}
	all := loaded(&r.origins)
	n := len(all)
	for _, free := range [...]string{"", Other} {
		if _, ok := all[free]; ok {
			n--
		}
	}
	return n < r.c.opts.MaxOrigins || r.c.limits.Load().origins[name]
}

// addOrigin makes the view of an origin, if there is none. Holds the collector's mu.
func (r *Resource) addOrigin(name string) {
	if r.origin(name) != nil {
		return
	}
	all := map[string]*life{}
	add := func(name string, v *node.View) {
		all[name] = new(life)
		all[name].init(r.c, v, ofOrigin, r, name)
	}
	if old := r.origins.Load(); old != nil {
		all = maps.Clone(*old)
	} else if !r.view.Empty() {
		add("", r.view.Clone()) // so far there was no other
	}
	add(name, node.NewView(r.c.shape, r.c.line.Now()))
	r.origins.Store(&all)
	r.sole.dead.Store(true) // after its successor can be found
}

// dropOrigins removes the views of origins without leaves. Holds the collector's mu.
func (r *Resource) dropOrigins() {
	old := loaded(&r.origins)
	all := old
	for name, o := range old {
		if o.view.Empty() {
			if o.dead.Store(true); len(all) == len(old) {
				all = maps.Clone(old)
			}
			delete(all, name)
		}
	}
	if len(all) < len(old) {
		r.origins.Store(&all)
	}
}
