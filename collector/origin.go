package collector

import (
	"maps"

	"github.com/windowstat/windowstat/node"
)

// Origin reads the calls by one origin. The empty origin is that of calls without one.
func (r *Resource) Origin(name string) View {
	if r == nil {
		return View{}
	}
	if o := r.now().origin(name); o != nil {
		return View{o}
	}
	return r.c.absent(r.findOrigin(name))
}

// findOrigin finds an origin of the resource that has the name whenever it is called.
func (r *Resource) findOrigin(name string) func() *generation {
	return func() *generation { return r.now().origin(name) }
}

// origin is an origin of this resource, also if that was retired; nil if there is none.
func (r *Resource) origin(name string) *generation {
	if all := loaded(&r.origins); all != nil {
		return all[name]
	}
	if name == "" {
		return &r.sole
	}
	return nil
}

// hasOrigin reports whether the resource has this origin, or may get it. The empty one always may.
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
	all := map[string]*generation{}
	add := func(name string, v *node.View) {
		all[name] = new(generation)
		all[name].init(r.c, v, r, r.findOrigin(name))
	}
	// While calls have no origin, the view of the resource is that of the only one. With a second origin it needs a view of its own, of the
	// same leaves.
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
	old, gone := loaded(&r.origins), false
	for _, o := range old {
		if o.view.Empty() {
			o.dead.Store(true)
			gone = true
		}
	}
	if !gone { // mostly, and then nothing is copied
		return
	}
	all := maps.Clone(old)
	maps.DeleteFunc(all, func(_ string, o *generation) bool { return o.dead.Load() })
	r.origins.Store(&all)
}
