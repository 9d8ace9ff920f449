package collector_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Regression: "defer e.Exit(err)" evaluates err at the defer statement, so every call counted as successful. End reads
// err when the function returns.
func TestDeferredEnd(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name      string
		f         func(e *collector.Entry) error
		exception string // expected class; empty if the call is no exception
		panics    any
	}{
		{"returns nil", func(e *collector.Entry) (err error) { defer e.End(&err); return nil }, "", nil},
		{
			"returns an error", func(e *collector.Entry) (err error) { defer e.End(&err); return errBad },
			errBad.Error(), nil,
		},
		{
			"sets the error after the defer",
			func(e *collector.Entry) (err error) { defer e.End(&err); err = errBad; return err }, errBad.Error(), nil,
		},
		{"error, but End gets nil", func(e *collector.Entry) error { defer e.End(nil); return errBad }, "", nil},
		{
			"panics", func(e *collector.Entry) (err error) { defer e.End(&err); panic(boom) },
			collector.ErrPanicked.Error(), boom,
		},
		{
			"panics, and End gets nil", func(e *collector.Entry) error { defer e.End(nil); panic(boom) },
			collector.ErrPanicked.Error(), boom,
		},
		{
			"Exit before End", func(e *collector.Entry) (err error) { defer e.End(&err); e.Exit(nil); return errBad },
			"", nil,
		},
		{
			"panics, and ExceptionClass panics, too",
			func(e *collector.Entry) (err error) { defer e.End(&err); panic("class") }, collector.Unspecified, "class",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCollector(t, collector.Options{ExceptionClass: func(err error) string {
				if test.panics == "class" {
					panic("in the class")
				}
				return err.Error()
			}})
			for way, enter := range map[string]func() collector.Entry{
				"handle": func() collector.Entry { return c.Resource("a").Enter() },
				"context of a handle": func() (e collector.Entry) {
					_, e, _ = c.Resource("a").EnterContext(t.Context())
					return
				},
				"name": func() (e collector.Entry) { _, e, _ = c.Enter(t.Context(), "a"); return },
			} {
				before := c.Resource("a").Snapshot(nil)
				func() {
					defer func() {
						if got := recover(); got != test.panics {
							t.Errorf("%s: panic %v, want %v", way, got, test.panics)
						}
					}()
					e := enter()
					_ = test.f(&e)
				}()
				after := c.Resource("a").Snapshot(nil)
				failed := after.Total.Exception - before.Total.Exception
				if after.InFlight != 0 || after.Total.Complete != before.Total.Complete+1 ||
					(failed == 1) != (test.exception != "") {
					t.Errorf("%s: %d in flight, %d exceptions, %+v", way, after.InFlight, failed, after.Total)
				}
			}
			for class, n := range c.Resource("a").Exceptions() {
				if class != test.exception || n != 3 {
					t.Errorf("%d exceptions of class %q, want 3 of %q", n, class, test.exception)
				}
			}
		})
	}
}

// Resource.EnterContext of a kept handle records a call exactly as Collector.Enter does: below the same caller, with
// the same origin, and under the same limits.
func TestEnterContextIsEnterByName(t *testing.T) {
	type entering func(ctx context.Context, opts ...collector.CallOption) (context.Context, collector.Entry, error)
	play := func(by func(c *collector.Collector, name string) entering) string {
		c, clock := clocked(t, collector.Options{MaxResources: 3, MaxOrigins: 2})
		limit(t, c, qps("limited", 2))
		said := ""
		enter := func(ctx context.Context, name string, opts ...collector.CallOption) context.Context {
			inner, e, err := by(c, name)(ctx, opts...)
			clock.add(10 * time.Millisecond)
			e.Exit(nil)
			if err != nil {
				said += fmt.Sprintln(name, err)
			}
			return inner
		}
		for i := range 4 {
			request := enter(
				t.Context(),
				"request",
				collector.Inbound(),
				collector.Origin(fmt.Sprint("o", i)),
				collector.Entrance("http"),
			)
			load := enter(request, "load")
			enter(enter(load, "load"), "limited", collector.Batch(int64(i)))
			enter(request, "limited", collector.Origin("own"))
			enter(load, "out", collector.Outbound())
			enter(load, "fourth")
			enter(t.Context(), "load")
		}
		for _, r := range c.Resources() {
			said += fmt.Sprintln(
				r.Name(),
				r.Snapshot(nil).Total,
				slices.Collect(firsts(r.Origins())),
				slices.Collect(firsts(r.Entrances())),
			)
		}
		return said + tree(c.Tree(), "")
	}
	handles := map[string]*collector.Resource{}
	byName := play(func(c *collector.Collector, name string) entering {
		c.Resource(name) // register the names in the same order as the run with handles does
		return func(ctx context.Context, opts ...collector.CallOption) (context.Context, collector.Entry, error) {
			return c.Enter(ctx, name, opts...)
		}
	})
	byHandle := play(func(c *collector.Collector, name string) entering {
		if handles[name] == nil {
			handles[name] = c.Resource(name)
		}
		return handles[name].EnterContext
	})
	if byName != byHandle {
		t.Errorf("by handle:\n%s\nby name:\n%s", byHandle, byName)
	}
}

// firsts returns the first element of each pair.
func firsts[K, V any](pairs iter.Seq2[K, V]) iter.Seq[K] {
	return func(yield func(K) bool) {
		for k := range pairs {
			if !yield(k) {
				return
			}
		}
	}
}

// After a resource is retired, a call through a kept handle registers the name again. The call counts for the new
// resource.
func TestEnterContextOfARetiredHandle(t *testing.T) {
	c, clock := clocked(t, collector.Options{RetireAfter: time.Hour})
	r := c.Resource("a")
	call := func() {
		ctx, outer, _ := c.Enter(t.Context(), "request", collector.Origin("web"))
		defer outer.Exit(nil)
		_, e, _ := r.EnterContext(ctx)
		e.Exit(nil)
	}
	call()
	clock.add(2 * time.Hour)
	c.Seal()
	c.Seal()
	if n := len(c.Resources()); n != 0 {
		t.Fatalf("%d resources are left", n)
	}
	call()
	if got := tree(c.Tree(), ""); got != "machine-root\n  _default\n    request\n      a\n" {
		t.Errorf("the tree is\n%s", got)
	}
	if n := c.Resource("a").Origin("web").Window().Pass; n != 1 || r.Window().Pass != 1 {
		t.Errorf("%d passes, want 1", n)
	}
}

// BenchmarkEnterContext compares Resource.EnterContext with Resource.Enter, which should be faster, and with
// Collector.Enter, which should be slower.
func BenchmarkEnterContext(b *testing.B) {
	c := newCollector(b, collector.Options{})
	r := c.Resource("load")
	ctx, request, _ := c.Enter(b.Context(), "GET /", collector.Inbound(), collector.Origin("web"))
	defer request.Exit(nil)
	for name, call := range map[string]func(){
		"handle":            func() { e := r.Enter(); e.Exit(nil) },
		"handle-end":        func() { e := r.Enter(); defer e.End(nil) },
		"handle-in-context": func() { _, e, _ := r.EnterContext(ctx); e.Exit(nil) },
		"name-in-context":   func() { _, e, _ := c.Enter(ctx, "load"); e.Exit(nil) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}
