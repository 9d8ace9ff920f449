package collector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Enter records that a call begins, below the call that ctx belongs to, and returns a context for what it calls. The call is in
// flight until one of the methods of e ends it; calls may overlap, outlive the one above them, and end in any order.
//
//	ctx, e, err := c.Enter(ctx, "load user")
//	if err != nil {
//		return err // a limit refused the call
//	}
//	user, err := load(ctx)
//	e.Exit(err)
//
// Where the call is one function, [Collector.Do] is simpler; where it is what the surrounding function does, see [Entry.End].
//
// The error is nil, or is [ErrBlocked]: a limit refused the call, which is counted as a block. The context is the one
// given then, and e is no call. Where there are no limits the error can be ignored.
//
// Enter and Exit cost about twice what they cost by a [Resource], and one allocation, of the context. The
// first call of a name, an origin or an entrance registers it. A nil Collector records nothing.
func (c *Collector) Enter(ctx context.Context, name string, opts ...CallOption) (inner context.Context, e Entry, err error) {
	inner = ctx
	if c == nil {
		return
	}
	o := options{name: name}
	up := c.below(ctx, &o, opts)
	inner, err = c.enter(ctx, up, nil, &o, &e)
	return
}

// enter lets a call enter below another one, at a leaf if it is known, and returns its context, or ctx and the error of a limit that
// refused it.
func (c *Collector) enter(ctx context.Context, up *frame, known *leaf, o *options, e *Entry) (context.Context, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	waits := ctx
	if o.prioritized {
		waits = askedContext{ctx, ctx.Done()}
	}
	err := errMoved
	if known != nil {
		err = known.enter(waits, e, o)
	}
	if err == errMoved {
		err = c.count(up, o, func(l *leaf) error { return l.enter(waits, e, o) })
	}
	if err != nil {
		return ctx, err
	}
	return e.frame(ctx, up, o), nil
}

// frame is the context of a call that has entered.
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

// askedContext is a context whose Done was asked before its call had borrowed anything: a context of somebody's own may panic.
type askedContext struct {
	context.Context
	done <-chan struct{}
}

func (a askedContext) Done() <-chan struct{} { return a.done }

// Do records f as one call, as [Collector.Enter] does, or returns [ErrBlocked] if a limit refuses it. An error that f
// returns is returned. A panic counts as an exception and goes on.
func (c *Collector) Do(ctx context.Context, name string, f func(context.Context) error, opts ...CallOption) error {
	ctx, e, err := c.Enter(ctx, name, opts...)
	if err != nil {
		return err
	}
	return e.run(func() error { return f(ctx) })
}

// below finds the entry above ctx, nil if there is none, and applies the options of a call below it.
func (c *Collector) below(ctx context.Context, o *options, opts []CallOption) *frame {
	o.apply(opts)
	up := c.frameOf(ctx)
	switch {
	case up != nil:
		o.entrance = up.leaf.treeNode.entrance.name
		if !o.hasOrigin && !o.outbound {
			o.origin = up.leaf.origin
		}
		if up.inbound() { // it has come in already
			o.inbound = false
		}
	case o.entrance == "":
		o.entrance = DefaultEntrance
	}
	return up
}

// Block records a call that was refused outside of the Collector, below the entry that ctx belongs to; see
// [Resource.Block].
func (c *Collector) Block(ctx context.Context, name, reason string, opts ...CallOption) {
	if c == nil {
		return
	}
	o := options{name: name}
	up := c.below(ctx, &o, opts)
	_ = c.count(up, &o, func(l *leaf) error { return l.block(reason, o.n) }) // it has no other than errMoved
}

// errMoved is the error of a call whose leaf was retired in this moment, or whose name has got a resource of its own since it was found.
var errMoved = errors.New("collector: counted elsewhere")

// count finds the leaf of a call and has f count it there, again while that returns errMoved.
func (c *Collector) count(up *frame, o *options, f func(*leaf) error) error {
	for {
		target, shared := c.target(o)
		l := c.find(up, target, o)
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

// reading is the reading of the timeline at a time of the clock.
func (c *Collector) reading(at time.Time) leap.Reading {
	return c.line.Now().Add(-max(c.now().Sub(at), 0))
}

// now reads the clock.
func (c *Collector) now() time.Time {
	if c.opts.Now != nil {
		return c.opts.Now()
	}
	return time.Now()
}

// frame is the context of a call, by which the calls below find it.
type frame struct {
	context.Context
	leaf  *leaf
	stamp uint64 // twice the reading at which the call entered, and one more if it is part of a call that came in from outside
}

func (f *frame) entered() leap.Reading { return leap.Reading(f.stamp) >> 1 }

func (f *frame) inbound() bool { return f.stamp&1 != 0 }

// frameKey finds the frame of a Collector in a context.
type frameKey struct{ c *Collector }

func (f *frame) Value(k any) any {
	if x, ok := k.(frameKey); ok && x.c == f.leaf.resource.c {
		return f
	}
	return f.Context.Value(k)
}

// String describes the context where one is printed; printing it otherwise would read statistics that change.
func (f *frame) String() string {
	return fmt.Sprintf("%v.WithEntry(%q)", f.Context, f.leaf.resource.name)
}

// frameOf finds the frame above ctx, which may be nil; nil if there is none.
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

// depth is how many frames are above f, and at most most.
func (f *frame) depth(most int) (n int) {
	c := f.leaf.resource.c
	for up := c.frameOf(f.Context); up != nil && n < most; up = c.frameOf(up.Context) {
		n++
	}
	return n
}
