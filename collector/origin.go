package collector

import (
	"maps"

	"github.com/windowstat/windowstat/node"
)

// Origin returns the View of the calls by one origin. Calls without an origin have the empty origin.
func (r *Resource) Origin(name string) View {
	if r == nil {
		return View{}
	}
	if o := r.now().origin(name); o != nil {
		return View{o}
	}
	return r.c.absent(r.findOrigin(name))
}

// Most resources have only calls without an origin. The view of such a resource also serves as the view of the empty
// origin. A resource is in one of these states:
//
//	origins of its calls so far     defaultOrigin   entries of the map origins              View of the origin ""
//	none, or only ""                alive           (origins is nil)                        the view of the resource
//	others; "" has leaves           dead            "" and each other origin with leaves    the view of the entry ""
//	others; "" has no leaves        dead            each origin with leaves                 idle
//
// A View of an origin stays valid in all these states. It calls generation.next, a function from findOrigin, to look up
// the origin by name.

// findOrigin returns a function that looks up an origin by name. Each time that this function runs, it searches the
// resource that then has the name of r, because r may have been retired.
func (r *Resource) findOrigin(name string) func() *generation {
	return func() *generation { return r.now().origin(name) }
}

// origin returns the generation of the origin with this name in r, or nil. It searches only r itself, even if r was
// retired and another resource has the name of r now.
func (r *Resource) origin(name string) *generation {
	if all := loaded(&r.origins); all != nil {
		return all[name]
	}
	if name == "" {
		return &r.defaultOrigin
	}
	return nil
}

// hasOrigin reports whether the resource has the origin with this name, or may get it. A resource may always get the
// empty origin, Other, and the origins in limits.
func (r *Resource) hasOrigin(name string) bool {
	if name == "" || name == Other || r.origin(name) != nil {
		return true
	}
	// The empty origin and Other do not count toward MaxOrigins.
	all := loaded(&r.origins)
	n := len(all)
	for _, free := range [...]string{"", Other} {
		if _, ok := all[free]; ok {
			n--
		}
	}
	return n < r.c.opts.MaxOrigins || r.c.limits.Load().origins[name]
}

// addOrigin creates the view of an origin if the view does not exist. The collector's mu must be held.
func (r *Resource) addOrigin(name string) {
	if r.origin(name) != nil {
		return
	}
	all := map[string]*generation{}
	add := func(name string, v *node.View) {
		all[name] = new(generation)
		all[name].init(r.c, v, r, r.findOrigin(name))
	}
	// While no call has an origin, the view of the resource also serves as the view of the empty origin. When another
	// origin is added, the empty origin needs a separate view. This view begins with the existing leaves.
	if old := r.origins.Load(); old != nil {
		all = maps.Clone(*old)
	} else if !r.view.Empty() {
		add("", r.view.Clone()) // all existing leaves have the empty origin
	}
	add(name, node.NewView(r.c.shape, r.c.line.Now()))
	r.origins.Store(&all)
	// Set dead last: a View that finds defaultOrigin dead continues in r.origins, which must be complete by then.
	r.defaultOrigin.dead.Store(true)
}

// dropOrigins removes the origins that have no leaves, with their views. The collector's mu must be held.
func (r *Resource) dropOrigins() {
	old, gone := loaded(&r.origins), false
	for _, o := range old {
		if o.view.Empty() {
			o.dead.Store(true)
			gone = true
		}
	}
	if !gone { // usually every origin has leaves
		return
	}
	all := maps.Clone(old)
	maps.DeleteFunc(all, func(_ string, o *generation) bool { return o.dead.Load() })
	r.origins.Store(&all)
}
