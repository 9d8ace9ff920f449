package collector

import (
	"maps"

	"github.com/windowstat/windowstat/node"
)

// Origin returns the View of the calls by one origin. The empty origin is the origin of calls without one.
func (r *Resource) Origin(name string) View {
	if r == nil {
		return View{}
	}
	if o := r.now().origin(name); o != nil {
		return View{o}
	}
	return r.c.absent(r.findOrigin(name))
}

// Most resources have only calls without an origin. Their view is then also the view of the empty origin:
//
//	calls                 defaultOrigin           origins            view of the resource
//	none, or origin ""    alive                   nil                all leaves = leaves of the origin ""
//	a second origin       dead, points to "" in   "": a clone of     all leaves
//	                      origins                 the view, "b"
//	"" has no leaves      dead                    "b"                all leaves
//
// A View of an origin follows the name through these states by findOrigin.

// findOrigin returns a function that looks up an origin. At each call, the function uses the resource that currently
// has the name of r.
func (r *Resource) findOrigin(name string) func() *generation {
	return func() *generation { return r.now().origin(name) }
}

// origin returns an origin of this resource, or nil. It does not look for another resource if this one was retired.
func (r *Resource) origin(name string) *generation {
	if all := loaded(&r.origins); all != nil {
		return all[name]
	}
	if name == "" {
		return &r.defaultOrigin
	}
	return nil
}

// hasOrigin reports whether the resource has this origin or may get it. The empty origin is always allowed.
func (r *Resource) hasOrigin(name string) bool {
	if name == "" || name == Other || r.origin(name) != nil {
		return true
	}
	// The empty origin and Other do not count in MaxOrigins.
	all := loaded(&r.origins)
	n := len(all)
	for _, free := range [...]string{"", Other} {
		if _, ok := all[free]; ok {
			n--
		}
	}
	return n < r.c.opts.MaxOrigins || r.c.limits.Load().origins[name]
}

// addOrigin creates the view of an origin if it does not exist. The collector's mu must be held.
func (r *Resource) addOrigin(name string) {
	if r.origin(name) != nil {
		return
	}
	all := map[string]*generation{}
	add := func(name string, v *node.View) {
		all[name] = new(generation)
		all[name].init(r.c, v, r, r.findOrigin(name))
	}
	// While no call has an origin, the view of the resource also serves the empty origin. A second origin makes a
	// separate view of the same leaves necessary.
	if old := r.origins.Load(); old != nil {
		all = maps.Clone(*old)
	} else if !r.view.Empty() {
		add("", r.view.Clone()) // all leaves so far have the empty origin
	}
	add(name, node.NewView(r.c.shape, r.c.line.Now()))
	r.origins.Store(&all)
	r.defaultOrigin.dead.Store(true) // last, so that lookups find its successor
}

// dropOrigins removes the views of origins without leaves. The collector's mu must be held.
func (r *Resource) dropOrigins() {
	old, gone := loaded(&r.origins), false
	for _, o := range old {
		if o.view.Empty() {
			o.dead.Store(true)
			gone = true
		}
	}
	if !gone { // the usual case, in which nothing is copied
		return
	}
	all := maps.Clone(old)
	maps.DeleteFunc(all, func(_ string, o *generation) bool { return o.dead.Load() })
	r.origins.Store(&all)
}
