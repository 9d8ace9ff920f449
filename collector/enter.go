package collector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Enter records the start of a call. If ctx is the context of another call, the new call is nested below that call.
// Calls that enter with the returned context are nested below the new call. The call is in flight until a method of e
// ends it. Calls may overlap, outlive their caller, and end in any order.
//
//	ctx, e, err := c.Enter(ctx, "load user")
//	if err != nil {
//		return err // a limit refused the call
//	}
//	user, err := load(ctx)
//	e.Exit(err)
//
// [Collector.Do] is simpler if the call is one function. If the call lasts until the calling function returns, see
// [Entry.End].
//
// If a limit refuses the call, the call counts as a block. Enter then returns ctx unchanged, the zero Entry, and an
// error that wraps [ErrBlocked]. Enter returns no other error, so a service without limits can ignore the error.
//
// Enter and Exit cost about twice as much as [Resource.Enter] and Exit, plus one allocation for the context. The first
// call with a name registers the name. Origins and entrances are registered in the same way. A nil Collector records
// nothing.
func (c *Collector) Enter(
	ctx context.Context,
	name string,
	opts ...CallOption,
) (inner context.Context, e Entry, err error) {
	inner = ctx
	if c == nil {
		return
	}
	o := options{name: name}
	up := c.below(ctx, &o, opts)
	inner, err = c.enter(ctx, up, nil, &o, &e)
	return
}

// enter implements [Collector.Enter] and [Resource.EnterContext]. up is the frame of the caller, or nil. (A frame is
// the context of a call.) handleLeaf is the leaf that a handle found for the call, or nil. enter first tries to record
// the call in this leaf, and otherwise looks up the leaf. It returns the context of the call. If a limit refuses the
// call, enter returns ctx and an error that wraps ErrBlocked.
func (c *Collector) enter(
	ctx context.Context, up *frame, handleLeaf *leaf, o *options, e *Entry,
) (context.Context, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	waits := ctx
	if o.prioritized {
		waits = doneContext{ctx, ctx.Done()}
	}
	// The leaf of the handle may have been retired. In that case, look up a leaf by the names of the call, as for a
	// call without a handle.
	err := errMoved
	if handleLeaf != nil {
		err = handleLeaf.enter(waits, e, o)
	}
	if err == errMoved {
		err = c.count(up, o, func(l *leaf) error { return l.enter(waits, e, o) })
	}
	if err != nil {
		return ctx, err
	}
	return e.frame(ctx, up, o), nil
}

// frame creates the context of a call that has entered, stores it in a slot of Collector.running, and returns it. It
// also applies the options [StartedAt] and [TraceID]. ctx is the context that the caller passed to Enter, and up is the
// frame in ctx, or nil.
func (e *Entry) frame(ctx context.Context, up *frame, o *options) *frame {
	l := e.at.leaf
	if o.at != nil && !o.at.IsZero() {
		e.call.Backdate(l.resource.c.reading(*o.at))
	}
	if o.trace != "" {
		ctx = withTrace(ctx, o.trace)
	}
	f := &frame{Context: ctx, leaf: l, stamp: uint64(e.call.Entered()) << 1}
	if o.inbound || up != nil && up.inbound() && !o.outbound {
		f.stamp |= 1
	}
	e.call.SetNote(e.call.Note() | l.resource.c.running.put(f))
	return f
}

// doneContext is a context that caches the result of Done. The Done method of a user-defined context may panic.
// Collector.enter therefore calls Done when it creates the doneContext, before the call borrows quota: a panic then
// leaves no borrowed quota behind.
type doneContext struct {
	context.Context
	done <-chan struct{}
}

func (a doneContext) Done() <-chan struct{} { return a.done }

// Do records f as one call, as [Collector.Enter] does, and returns the error of f. If f panics, the call counts as an
// exception, and the panic continues. If a limit refuses the call, Do does not call f, and returns an error that wraps
// [ErrBlocked].
func (c *Collector) Do(ctx context.Context, name string, f func(context.Context) error, opts ...CallOption) error {
	ctx, e, err := c.Enter(ctx, name, opts...)
	if err != nil {
		return err
	}
	return e.run(func() error { return f(ctx) })
}

// below applies opts to o, for a call with the context ctx. It returns the frame of the caller, or nil if the call is
// outermost. A nested call gets the entrance of its caller. It also gets the origin of its caller, except if opts set
// an origin or if the call is outbound. An outermost call gets the entrance from opts, or else [DefaultEntrance].
func (c *Collector) below(ctx context.Context, o *options, opts []CallOption) *frame {
	o.apply(opts)
	up := c.frameOf(ctx)
	switch {
	case up != nil:
		o.entrance = up.leaf.treeNode.entrance.name
		if !o.hasOrigin && !o.outbound {
			o.origin = up.leaf.origin
		}
		if up.inbound() { // the caller is part of an inbound call, so the nested call is not counted as inbound again
			o.inbound = false
		}
	case o.entrance == "":
		o.entrance = DefaultEntrance
	}
	return up
}

// Block records a call that code outside of the Collector has refused. The parameter reason is the cause of the
// refusal, such as "overload". If ctx is the context of another call, the refused call is nested below that call. See
// [Resource.Block].
func (c *Collector) Block(ctx context.Context, name, reason string, opts ...CallOption) {
	if c == nil {
		return
	}
	o := options{name: name}
	up := c.below(ctx, &o, opts)
	// count returns no error here: the only error of l.block is errMoved, and count handles errMoved.
	_ = c.count(up, &o, func(l *leaf) error { return l.block(reason, o.n) })
}

// errMoved means that the leaf that was looked up for a call cannot record the call. There are three reasons. Since the
// lookup, the leaf was retired, the name of the call got its own resource, or a limiter of the call was dropped. The
// caller must look up the leaf again.
var errMoved = errors.New("collector: counted elsewhere")

// count looks up the leaf of a call, and calls f, which records the call in the leaf. If f returns errMoved, count
// looks up the leaf and calls f again. Otherwise count returns the result of f. If the call is recorded for its
// fallback resource, count also counts it in Health.Unearned, and calls share for this resource.
func (c *Collector) count(up *frame, o *options, f func(*leaf) error) error {
	for {
		target, shared := c.target(o)
		l := c.leafFor(up, target, o)
		if shared {
			c.share(l.resource)
		}
		err := f(l)
		if err == errMoved {
			continue
		}
		if shared {
			c.unearned.Add(o.n)
		}
		return err
	}
}

// reading converts t, a time of the wall clock, to the reading of the timeline at the time t. If t is in the future,
// reading returns the current reading.
func (c *Collector) reading(t time.Time) leap.Reading {
	return c.line.Now().Add(-max(c.now().Sub(t), 0))
}

// now returns the current time of the Collector's clock.
func (c *Collector) now() time.Time {
	if c.opts.Now != nil {
		return c.opts.Now()
	}
	return time.Now()
}

// frame is the context of a call. It leads from a call to its caller:
//
//	ctx of the request <- frame "GET /cart" <- WithTimeout … <- frame "load user"
//	                      leaf, stamp                           leaf, stamp
//
// The function frameOf finds the closest frame of its Collector. It skips other contexts and the frames of other
// Collectors.
//
// A context may outlive its call. If another call enters with this context later, it counts as nested below the call
// that has ended.
type frame struct {
	context.Context
	leaf  *leaf
	stamp uint64 // twice the reading at which the call entered, plus 1 if the call is part of an inbound call
}

func (f *frame) entered() leap.Reading { return leap.Reading(f.stamp) >> 1 }

func (f *frame) inbound() bool { return f.stamp&1 != 0 }

// frameKey is the context key of a Collector's frame.
type frameKey struct{ c *Collector }

func (f *frame) Value(k any) any {
	if x, ok := k.(frameKey); ok && x.c == f.leaf.resource.c {
		return f
	}
	return f.Context.Value(k)
}

// String describes the context. Without this method, fmt would print the fields of the leaf by reflection, and race
// with concurrent calls.
func (f *frame) String() string {
	return fmt.Sprintf("%v.WithEntry(%q)", f.Context, f.leaf.resource.name)
}

// frameOf returns the closest frame of this Collector in ctx, or nil. ctx may be nil.
func (c *Collector) frameOf(ctx context.Context) *frame {
	if ctx == nil {
		return nil
	}
	if f, ok := ctx.(*frame); ok && f.leaf.resource.c == c {
		return f
	}
	f, _ := ctx.Value(frameKey{c}).(*frame)
	return f
}

// depth returns the number of frames above f: the frames of the caller, of the caller's caller, and so on. It counts at
// most maxDepth frames.
func (f *frame) depth(maxDepth int) (n int) {
	c := f.leaf.resource.c
	for up := c.frameOf(f.Context); up != nil && n < maxDepth; up = c.frameOf(up.Context) {
		n++
	}
	return n
}
