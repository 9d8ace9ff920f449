package collector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// ErrPanicked is the error of a call whose function did not return: it panicked, or ended its goroutine. It is always an
// exception.
var ErrPanicked = errors.New("collector: panicked")

// Entry is a call in flight. It must not be copied. Its zero value, and nil, are no call.
type Entry struct {
	call node.Call // marked if there is a reservation
	at   *place
}

// Exit records that the call ended: its response time, whether it failed, and one less in flight, as one change. [Options]
// decide which errors are failures. It may be called from another goroutine than the one that entered, and in any
// order with other entries. A second Exit counts nothing.
//
// Deferred as it stands it does not see a panic and counts the call as good; [Resource.Do] does see it.
func (e *Entry) Exit(err error) {
	switch {
	case e == nil:
	case err == nil:
		if e.call.End(false, 0) > 0 && e.call.Marked() { // as end does, without a call
			e.at.reserved.release()
		}
	default:
		e.exitWith(err, Code{})
	}
}

// end ends the call, and returns how many completions were counted.
func (e *Entry) end(failed bool, code Code) int64 {
	n := e.call.End(failed, code.n)
	if n > 0 && e.call.Marked() {
		e.at.reserved.release()
	}
	return n
}

// exitWith asks whether the error is an exception. Whatever the answer, even a panic, which is one, the call ends. It
// returns how many completions were counted.
func (e *Entry) exitWith(err error, code Code) (n int64) {
	if e.at == nil {
		return 0
	}
	c := e.at.leaf.resource.c
	failed := true
	defer func() {
		if n = e.end(failed, code); n > 0 && failed && c.opts.ExceptionClass != nil {
			e.at.leaf.resource.classify(err, n)
		}
	}()
	failed = c.isException(err)
	return 0 // replaced when the call ends
}

// classify counts exceptions by their class, as [Unspecified] if the function that tells it does not return.
func (r *Resource) classify(err error, n int64) {
	class := ""
	defer func() { r.exceptions.add(class, n) }()
	class = r.c.opts.ExceptionClass(err)
}

// run exits the entry when f has returned, with its error, or panicked.
func (e *Entry) run(f func() error) (err error) {
	err = ErrPanicked // unless it returns
	defer func() { e.Exit(err) }()
	err = f()
	return err
}

// frame is the context of an entry, by which the entries below find it. The entry is part of it, so that a call takes one
// allocation.
type frame struct {
	context.Context
	entry Entry
}

// frameKey finds the frame of a Collector in a context.
type frameKey struct{ c *Collector }

func (f *frame) Value(k any) any {
	if x, ok := k.(frameKey); ok && x.c == f.entry.at.leaf.resource.c {
		return f
	}
	return f.Context.Value(k)
}

// String describes the context where one is printed; printing it otherwise would read the call.
func (f *frame) String() string {
	return fmt.Sprintf("%v.WithEntry(%q)", f.Context, f.entry.at.leaf.resource.name)
}

// frameOf finds the entry above ctx, nil if there is none.
func (c *Collector) frameOf(ctx context.Context) *frame {
	if f, ok := ctx.(*frame); ok && f.entry.at.leaf.resource.c == c {
		return f
	}
	f, _ := ctx.Value(frameKey{c}).(*frame)
	return f
}

// depth is how many entries are above f, and at most most.
func (f *frame) depth(most int) (n int) {
	c := f.entry.at.leaf.resource.c
	for up := c.frameOf(f.Context); up != nil && n < most; up = c.frameOf(up.Context) {
		n++
	}
	return n
}

// Enter records that a call begins, below the entry that ctx belongs to, and returns a context for what it calls, and
// the entry to exit. Entries may overlap, outlive the one above them, and end in any order, in any goroutine.
//
//	ctx, entry, err := c.Enter(ctx, "load user")
//	if err != nil {
//		return err // a limit refused the call
//	}
//	user, err := load(ctx)
//	entry.Exit(err)
//
// Where the call is one function, [Collector.Do] is simpler, and sees panics.
//
// The error is nil, or is [ErrBlocked]: a limit refused the call, which is counted as a block. The context is the one
// given then, and the entry is nil. Where there are no limits the error can be ignored.
//
// Enter and Exit cost some two and a half times as much as by a [Resource], and one allocation, of the context. The
// first call of a name, an origin or an entrance registers it. A nil Collector records nothing.
func (c *Collector) Enter(ctx context.Context, name string, opts ...Option) (context.Context, *Entry, error) {
	if c == nil {
		return ctx, nil, nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	var o options
	up := c.below(ctx, &o, opts)
	o.name = name
	waits := ctx
	if o.prioritized {
		waits = askedContext{ctx, ctx.Done()}
	}
	f := &frame{Context: ctx}
	if err := c.count(up, &o, func(l *leaf) error { return l.enter(waits, &f.entry, &o) }); err != nil {
		return ctx, nil, err
	}
	if o.at != nil && !o.at.IsZero() {
		f.entry.call.Backdate(c.reading(*o.at))
	}
	return f, &f.entry, nil
}

// askedContext is a context whose Done was asked before its call had borrowed anything: a context of somebody's own may panic.
type askedContext struct {
	context.Context
	done <-chan struct{}
}

func (a askedContext) Done() <-chan struct{} { return a.done }

// Do records f as one call, as [Collector.Enter] does, or returns [ErrBlocked] if a limit refuses it. An error that f
// returns is returned. A panic counts as an exception and goes on.
func (c *Collector) Do(ctx context.Context, name string, f func(context.Context) error, opts ...Option) error {
	ctx, e, err := c.Enter(ctx, name, opts...)
	if err != nil {
		return err
	}
	return e.run(func() error { return f(ctx) })
}

// below finds the entry above ctx, nil if there is none, and applies the options of a call below it.
func (c *Collector) below(ctx context.Context, o *options, opts []Option) *frame {
	o.apply(opts)
	up := c.frameOf(ctx)
	switch {
	case up != nil:
		o.entrance = up.entry.at.leaf.treeNode.entrance.name
		if !o.hasOrigin && !o.outbound {
			o.origin = up.entry.at.leaf.origin
		}
	case o.entrance == "":
		o.entrance = DefaultEntrance
	}
	return up
}

// Block records a call that was refused outside of the Collector, below the entry that ctx belongs to; see
// [Resource.Block].
func (c *Collector) Block(ctx context.Context, name, reason string, opts ...Option) {
	if c == nil {
		return
	}
	if ctx == nil {
		ctx = context.Background()
	}
	var o options
	up := c.below(ctx, &o, opts)
	o.name = name
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
