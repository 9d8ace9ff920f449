package collector

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
)

// Resource counts the calls of one resource: an endpoint, a query, a client. Get it from [Collector.Resource] and
// keep it. A nil *Resource records nothing and reads as idle. It is safe for concurrent use.
//
// A call that enters by a Resource has no origin, and [DefaultEntrance] for its context. For more see [Collector.Enter].
type Resource struct {
	// A call reads these, and they begin a cache line:
	current atomic.Pointer[leaf]    // where Enter records, a leaf of this resource; nil until it is first used, and when it is retired
	limiter atomic.Pointer[limiter] // nil while there is no limit
	generation

	name string
	sole generation              // the origin "" while there is no other; dead when there is
	kept atomic.Pointer[limiter] // what limiter is or was; changes under the collector's mu

	given  atomic.Bool // not only earned, see [Earned]
	shared atomic.Bool // it counts calls of other names, see [CountedAs]; changes under the collector's mu
	stays  bool        // it is never retired; nor is one that is shared

	blocks, exceptions counterVec
	traced             atomic.Pointer[[]atomic.Pointer[Exemplar]] // by classic bucket; nil while there is none

	// These are replaced under the collector's mu, not changed:
	contexts atomic.Pointer[[]*TreeNode]
	origins  atomic.Pointer[map[string]*generation] // nil while there is only the empty one
}

// Name is the name under which the resource is kept, see [CleanName].
func (r *Resource) Name() string {
	if r == nil {
		return ""
	}
	return r.name
}

// Enter records that a call begins: it passed, and is in flight until [Entry.Exit]. It costs one reading of the
// monotonic clock and one atomic addition; Exit costs another reading and a lock that is almost never contended. Both
// allocate only what the resource keeps, when it is first needed.
//
//	e := r.Enter()
//	…
//	e.Exit(err)
//
// No limit refuses it; but where there are some, it uses them up. See [Resource.TryEnter].
func (r *Resource) Enter() (e Entry) {
	if r != nil && !r.begin(&e) {
		_ = r.enter(&e, true) // which no limit refuses
	}
	return
}

// begin enters, if there is neither a limit nor anything to be made first: the way of nearly all calls.
func (r *Resource) begin(e *Entry) bool {
	l := r.current.Load()
	if l == nil || r.limiter.Load() != nil {
		return false
	}
	e.at, e.call = &l.own, l.Enter(r.c.line.Now(), 1)
	return !e.call.IsZero()
}

// EnterContext is [Collector.Enter] for the name of the resource, which it need not look up: the call is below the one that ctx
// belongs to, and has its origin. It costs about half as much again as Enter, and one allocation, of the context.
func (r *Resource) EnterContext(ctx context.Context, opts ...CallOption) (inner context.Context, e Entry, err error) {
	inner = ctx
	if r == nil {
		return
	}
	o := options{name: r.name}
	up := r.c.below(ctx, &o, opts)
	inner, err = r.c.enter(ctx, up, r.known(up, &o), &o, &e)
	return
}

// known is the leaf of a call that no limit is for, nil if the leaf or its place in the tree are to be made.
func (r *Resource) known(up *frame, o *options) *leaf {
	if r.limiter.Load() != nil || r.dead.Load() {
		return nil
	}
	if up == nil {
		return r.leaf(o.entrance, o.key(up))
	}
	for _, t := range r.treeNodes() {
		if t.entrance == up.leaf.treeNode.entrance && t.below(up.leaf.treeNode) {
			return t.leaf(o.key(up))
		}
	}
	return nil
}

// TryEnter is Enter for a call that limits may refuse. Then the error is [ErrBlocked], the call is counted as a block,
// and the Entry is no call.
func (r *Resource) TryEnter() (e Entry, err error) {
	if r != nil && !r.begin(&e) {
		err = r.enter(&e, false)
	}
	return
}

// Do records f as one call, or returns [ErrBlocked] if a limit refuses it. An error that f returns is returned, and
// counts as an exception if [Options].Exception reports so; a panic, which goes on, and a runtime.Goexit always do.
func (r *Resource) Do(f func() error) error {
	e, err := r.TryEnter()
	if err != nil {
		return err
	}
	return e.run(f)
}

// enter lets a call enter, or records that a limit refused it.
func (r *Resource) enter(e *Entry, admitted bool) error {
	var o options // a literal would be copied, which costs a tenth of the call
	o.name, o.entrance, o.n, o.admitted = r.name, DefaultEntrance, 1, admitted
	return r.count(&o, func(l *leaf) error { return l.enter(context.Background(), e, &o) })
}

// count has f count a call without a context. If the resource was retired, its name is looked up for each call: another resource may
// have it by now, or all further names.
func (r *Resource) count(o *options, f func(*leaf) error) error {
	if l := r.current.Load(); l != nil {
		if err := f(l); err != errMoved {
			return err
		}
		r.current.CompareAndSwap(l, nil)
	}
	return r.c.count(nil, o, func(l *leaf) error {
		if l.resource == r {
			r.current.Store(l)
		}
		return f(l)
	})
}

// Block records a call that was refused, and so never began. Reasons should be few, see [Resource.Blocks]; the empty one is
// [Unspecified].
func (r *Resource) Block(reason string) {
	if r == nil {
		return
	}
	o := options{name: r.name, entrance: DefaultEntrance, n: 1}
	_ = r.count(&o, func(l *leaf) error { return l.block(reason, 1) }) // it has no other than errMoved
}

// What decides about calls reads PassQPS, Window and InFlight; tests and logs read Snapshot. They are here so that one
// handle is enough. Everything else is read through a View.

// PassQPS is [View.PassQPS] of the resource: how many calls passed in the second window, per second. The window slides by
// one bucket and ends with the one that is open.
func (r *Resource) PassQPS() float64 { return r.View().PassQPS() }

// Window is [View.Window] of the resource.
func (r *Resource) Window() node.Window { return r.View().Window() }

// InFlight is [View.InFlight] of the resource.
func (r *Resource) InFlight() int64 { return r.View().InFlight() }

// Snapshot is [View.Snapshot] of the resource.
func (r *Resource) Snapshot(h *node.Histogram) node.Snapshot { return r.View().Snapshot(h) }

// now is the resource that has this name now.
func (r *Resource) now() *Resource {
	if r.dead.Load() {
		if x, ok := r.c.byName.Load(r.name); ok {
			return x.(*Resource)
		}
	}
	return r
}

// View reads the resource over all origins and entrances: Sentinel's ClusterNode.
func (r *Resource) View() View {
	if r == nil {
		return View{}
	}
	return View{&r.generation}
}

// Origins iterates over the origins of the resource, sorted, each with its view; the empty origin is that of calls
// without one. Every call is in exactly one of them.
func (r *Resource) Origins() iter.Seq2[string, View] {
	return func(yield func(string, View) bool) {
		if r == nil {
			return
		}
		r := r.now()
		all := r.origins.Load()
		if all == nil {
			yield("", View{&r.sole})
			return
		}
		for _, name := range slices.Sorted(maps.Keys(*all)) {
			if !yield(name, View{(*all)[name]}) {
				return
			}
		}
	}
}

// Entrances iterates over the entrances in whose context the resource was called, sorted, each with its view. Every
// call is in exactly one of them.
func (r *Resource) Entrances() iter.Seq2[string, View] {
	return func(yield func(string, View) bool) {
		if r == nil {
			return
		}
		for _, p := range r.now().treeNodes() {
			if !yield(p.entrance.name, p.View()) {
				return
			}
		}
	}
}

// Blocks iterates over the refused calls by reason: the limit that refused them, or the reason passed to Block. There are
// at most 16 reasons; [Other] is for all further ones. A resource without refused calls yields [Unspecified], with 0.
func (r *Resource) Blocks() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if r != nil && !r.now().blocks.each(yield) {
			yield(Unspecified, 0)
		}
	}
}

// Exceptions iterates over the classes of exceptions, with how many there were, see [Options].ExceptionClass.
func (r *Resource) Exceptions() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if r != nil {
			r.now().exceptions.each(yield)
		}
	}
}
