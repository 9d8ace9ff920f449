package collector

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
)

// Resource counts the calls of one resource: an endpoint, a query, a client. Get a Resource from [Collector.Resource]
// and keep it. A nil *Resource records nothing and reads as idle. A Resource is safe for concurrent use.
//
// A call that enters through a Resource has no origin, and its entrance is [DefaultEntrance]. To set an origin or an
// entrance, use [Resource.EnterContext] or [Collector.Enter].
type Resource struct {
	// Every call reads the next three fields. These fields are first in the struct, so the allocator places them in one
	// cache line.

	current atomic.Pointer[leaf]    // leaf in which Enter records; nil before the first Enter and after retirement
	limiter atomic.Pointer[limiter] // nil while the resource has no limit
	generation

	name          string
	defaultOrigin generation // the empty origin until r gets another origin; then dead
	// limiterState is the limiter of the resource, also while no limit applies and the field limiter is nil. It is
	// changed with the collector's mu held.
	limiterState atomic.Pointer[limiter]

	given atomic.Bool // the name comes from code, not only from requests; see [FromRequest]
	// fallback means that the resource records calls of other names (see [FallbackResource]) and is therefore never
	// retired. It is changed with the collector's mu held.
	fallback  atomic.Bool
	permanent bool // in Options.Given, and therefore never retired

	blocks, exceptions counterVec
	traced             atomic.Pointer[[]atomic.Pointer[Exemplar]] // by histogram bucket; nil before the first exemplar

	// The next two pointers are replaced with the collector's mu held. The slice and the map are never modified. The
	// tree nodes are sorted by entrance.
	nodes   atomic.Pointer[[]*TreeNode]            // one for each entrance through which the resource was called
	origins atomic.Pointer[map[string]*generation] // nil until the resource gets an origin other than the empty one
}

// Name returns the name of the resource; see [CleanName].
func (r *Resource) Name() string {
	if r == nil {
		return ""
	}
	return r.name
}

// Enter records the start of a call. The call passes, and is in flight until [Entry.Exit]. Enter costs one reading of
// the monotonic clock and one atomic addition. Exit costs another reading and a lock that is almost never contended.
// Enter and Exit allocate memory only when the resource needs more memory than ever before; the resource then keeps the
// memory.
//
//	e := r.Enter()
//	…
//	e.Exit(err)
//
// No limit refuses the call, but limits count it. See [Resource.TryEnter].
func (r *Resource) Enter() (e Entry) {
	if r != nil && !r.begin(&e) {
		_ = r.enter(&e, true) // true: no limit refuses the call
	}
	return
}

// A call through a handle (a *Resource that the caller keeps) takes one of three paths:
//
//	begin   r.current has a leaf, and there is no limit: two loads, then Statistic.Enter     nearly all calls
//	count   r.current has a leaf, and there is a limit: leaf.enter calls limiter.admit
//	count   r.current is nil, or its leaf was retired: find or create the leaf, and store it in r.current

// begin records the start of a call if the resource has no limit and r.current has a leaf that is not retired. That is
// the case for nearly all calls. begin reports whether it has recorded the call.
func (r *Resource) begin(e *Entry) bool {
	l := r.current.Load()
	if l == nil || r.limiter.Load() != nil {
		return false
	}
	e.at, e.call = &l.own, l.Enter(r.c.line.Now(), 1)
	return !e.call.IsZero()
}

// EnterContext is [Collector.Enter] for the name of the resource, without the lookup of the name. The call is nested
// below the call of ctx, and inherits its origin. EnterContext costs about 1.5 times as much as Enter, plus one
// allocation for the context.
func (r *Resource) EnterContext(ctx context.Context, opts ...CallOption) (inner context.Context, e Entry, err error) {
	inner = ctx
	if r == nil {
		return
	}
	o := options{name: r.name}
	up := r.c.below(ctx, &o, opts)
	inner, err = r.c.enter(ctx, up, r.findLeaf(up, &o), &o, &e)
	return
}

// findLeaf returns the leaf that records a call below the frame up, without a lookup of the name in the registry. (A
// frame is the context of a call; up is nil for an outermost call.) It returns nil if the resource has a limit, if the
// resource was retired, if the leaf does not exist yet, or if its tree node is not a child of the caller's node yet.
// Collector.enter then looks up the leaf as for a call without a handle.
func (r *Resource) findLeaf(up *frame, o *options) *leaf {
	if r.limiter.Load() != nil || r.dead.Load() {
		return nil
	}
	if up == nil {
		return r.leaf(o.entrance, o.key(up))
	}
	for _, t := range r.treeNodes() {
		if t.entrance == up.leaf.treeNode.entrance && t.isChildOf(up.leaf.treeNode) {
			return t.leaf(o.key(up))
		}
	}
	return nil
}

// TryEnter is Enter for a call that limits may refuse. If a limit refuses the call, the error wraps [ErrBlocked], the
// call counts as a block, and the Entry is the zero Entry.
func (r *Resource) TryEnter() (e Entry, err error) {
	if r != nil && !r.begin(&e) {
		err = r.enter(&e, false)
	}
	return
}

// Do records f as one call and returns its error. The error counts as an exception if [Options].Exception reports so. A
// panic of f or a runtime.Goexit always counts as an exception, and the panic continues. If a limit refuses the call,
// Do does not call f, and returns an error that wraps [ErrBlocked].
func (r *Resource) Do(f func() error) error {
	e, err := r.TryEnter()
	if err != nil {
		return err
	}
	return e.run(f)
}

// enter records the start of a call, or its refusal by a limit. If admitted is true, no limit refuses the call.
func (r *Resource) enter(e *Entry, admitted bool) error {
	// Do not use a composite literal: Go would build it and then copy it, and a call would take 10 % longer.
	var o options
	o.name, o.entrance, o.n, o.admitted = r.name, DefaultEntrance, 1, admitted
	return r.count(&o, func(l *leaf) error { return l.enter(context.Background(), e, &o) })
}

// count finds the leaf for a call without a context, and passes the leaf to f. f records the call in this leaf. If f
// returns errMoved, the leaf cannot record the call, and count tries again with another leaf. After r was retired,
// r.current is nil, so each call looks up the name: another resource may have the name now, or the resource [Other] may
// record the call.
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

// Block records a refused call, which never started. There should be few different reasons; see [Resource.Blocks]. The
// empty reason counts as [Unspecified].
func (r *Resource) Block(reason string) {
	if r == nil {
		return
	}
	o := options{name: r.name, entrance: DefaultEntrance, n: 1}
	// The only error of l.block is errMoved, and count handles it.
	_ = r.count(&o, func(l *leaf) error { return l.block(reason, 1) })
}

// The next four methods are shortcuts for methods of the resource's View. PassQPS, Window and InFlight are for code
// that decides about calls; Snapshot is for tests and logs.

// PassQPS is [View.PassQPS] of the resource: the passes per second in the window of one second that ends with the open
// bucket.
func (r *Resource) PassQPS() float64 { return r.View().PassQPS() }

// Window is [View.Window] of the resource.
func (r *Resource) Window() node.Window { return r.View().Window() }

// InFlight is [View.InFlight] of the resource.
func (r *Resource) InFlight() int64 { return r.View().InFlight() }

// Snapshot is [View.Snapshot] of the resource.
func (r *Resource) Snapshot(h *node.Histogram) node.Snapshot { return r.View().Snapshot(h) }

// now returns r if r was not retired. Otherwise it returns the resource that has the name of r now, or r if no resource
// has this name.
func (r *Resource) now() *Resource {
	if r.dead.Load() {
		if x, ok := r.c.byName.Load(r.name); ok {
			return x.(*Resource)
		}
	}
	return r
}

// View returns the View of all calls of the resource, of all origins and entrances: Sentinel's ClusterNode.
func (r *Resource) View() View {
	if r == nil {
		return View{}
	}
	return View{&r.generation}
}

// Origins iterates over the origins of the resource with their Views, sorted by name. Calls without an origin have the
// empty origin. Every call of the resource is in exactly one of these Views.
func (r *Resource) Origins() iter.Seq2[string, View] {
	return func(yield func(string, View) bool) {
		if r == nil {
			return
		}
		r := r.now()
		all := r.origins.Load()
		if all == nil {
			yield("", View{&r.defaultOrigin})
			return
		}
		for _, name := range slices.Sorted(maps.Keys(*all)) {
			if !yield(name, View{(*all)[name]}) {
				return
			}
		}
	}
}

// Entrances iterates over the entrances through which the resource was called, sorted by name. Each View has the calls
// of the resource whose chain of calls began at this entrance. Every call of the resource is in exactly one of these
// Views.
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

// Blocks iterates over the reasons of refused calls, with the number of calls for each. The reason is the name of the
// limit that refused them, or the text passed to Block. There are at most 16 reasons. The first fifteen reasons are
// counted separately, and all later reasons share the reason [Other]. A resource without refused calls yields
// [Unspecified] with 0.
func (r *Resource) Blocks() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if r != nil && !r.now().blocks.each(yield) {
			yield(Unspecified, 0)
		}
	}
}

// Exceptions iterates over the classes of exceptions with their counts; see [Options].ExceptionClass.
func (r *Resource) Exceptions() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if r != nil {
			r.now().exceptions.each(yield)
		}
	}
}
