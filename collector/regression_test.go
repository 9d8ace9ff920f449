package collector_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// Each test in this file covers a defect that package collector had. The comment of the test describes the defect.

// Regression: a limit on concurrency read the number of calls in flight, then the number of waiting calls, and added
// the two numbers. Suppose that a call waited for a bucket, and the bucket began after the limit had read the first
// number and before it read the second number. Then the call was in neither number, and the limit admitted one call too
// many.
func TestRegressionALoanIsMissedByConcurrency(t *testing.T) {
	c, f := clocked(t, collector.Options{})
	limit(
		t,
		c,
		collector.Limit{Resource: "a", Count: 2},
		collector.Limit{Resource: "a", Grade: collector.Concurrency, Count: 1},
	)
	r := c.Resource("a")
	for range 2 {
		e, _ := r.TryEnter()
		e.Exit(nil)
	}
	f.set(600 * ms)
	done := make(chan *collector.Entry)
	go func() {
		_, e, _ := c.Enter(t.Context(), "a", collector.Prioritized())
		done <- &e
	}()
	waitForLoans(t, c, "a")
	f.set(time.Second)
	if _, err := r.TryEnter(); err == nil {
		t.Errorf("a call entered next to the call that had borrowed its pass: %d in flight", r.InFlight())
	}
	(<-done).Exit(nil)
}

func waitForLoans(t *testing.T, c *collector.Collector, name string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if n, _ := c.Resource(name).View().Node().Waiting(c.Timeline().Now()); n > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no call waits")
		}
	}
}

// Regression: a limit on concurrency counted a waiting batch of n calls as n calls in flight, but a batch in flight as
// one call in flight.
func TestRegressionAWaitingBatchIsOneCall(t *testing.T) {
	c, f := clocked(t, collector.Options{})
	limit(
		t,
		c,
		collector.Limit{Resource: "a", Count: 10},
		collector.Limit{Resource: "a", Grade: collector.Concurrency, Count: 3},
	)
	_, e, _ := c.Enter(t.Context(), "a", collector.Batch(9))
	e.Exit(nil)
	f.set(600 * ms)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, _, err := c.Enter(ctx, "a", collector.Prioritized(), collector.Batch(5))
		done <- err
	}()
	waitForLoans(t, c, "a")
	if _, err := c.Resource("a").TryEnter(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Regression: if the clock of Options.Now made no progress, a prioritized call waited for ever.
func TestRegressionStoppedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := clocked(t, collector.Options{})
		limit(t, c, collector.Limit{Resource: "a", Count: 1})
		c.Resource("a").Enter()
		f.set(700 * ms)
		if _, _, err := c.Enter(t.Context(), "a", collector.Prioritized()); !errors.Is(err, collector.ErrBlocked) {
			t.Error(err)
		}
	})
}

// Regression: an entrance was removed although a worker still made calls with a context of this entrance. Later calls
// of the worker were counted for a node outside of the tree, so the tree lacked these calls.
func TestRegressionAnEntranceIsForgotten(t *testing.T) {
	c, f := retiring(t)
	ctx, start, _ := c.Enter(t.Context(), "startup", collector.Entrance("E"))
	start.Exit(nil)
	for range 20 {
		_, e, _ := c.Enter(ctx, "poll")
		e.Exit(nil)
		f.add(30 * time.Second)
		c.Seal()
	}
	_, e, _ := c.Enter(t.Context(), "other", collector.Entrance("E"))
	e.Exit(nil)
	if got, want := tree(c.Tree(), ""), "machine-root\n  E\n    other\n    poll\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	root, entrance := c.Tree().View().Snapshot(nil).Total.Pass, c.Tree().Children()[0].View().Snapshot(nil).Total.Pass
	if root != entrance || root != 2 {
		t.Errorf("root %d, entrance %d", root, entrance)
	}
	// The entrance "E" was never removed, so the call "other" uses the entrance of the call "startup".
	if h := c.Health(); h.Entrances != 1 {
		t.Errorf("%+v", h)
	}
}

// Regression: calls entered with contexts of entrances that had been removed, and created too many entrances. Now the
// tree has at most MaxEntrances entrances and the entrance Other.
func TestRegressionEntrancesBeyondTheLimit(t *testing.T) {
	c, f := clocked(
		t,
		collector.Options{MaxEntrances: 5, RetireAfter: 2 * time.Minute, Windows: node.Options{History: time.Minute}},
	)
	var below []context.Context
	for i := range 50 {
		ctx, e, _ := c.Enter(t.Context(), "a", collector.Entrance(fmt.Sprint(i)))
		e.Exit(nil)
		below = append(below, ctx)
		f.add(5 * time.Minute)
		c.Seal()
	}
	for _, ctx := range below {
		_, e, _ := c.Enter(ctx, "b")
		e.Exit(nil)
	}
	if h := c.Health(); h.Entrances > 6 {
		t.Errorf("%+v", h)
	}
}

// Regression: a resource had two nodes: one below the entrance of its caller, and one below the entrance Other. If
// there was no memory for the leaf of a call, the node below Other recorded the call. When calls used the two nodes in
// turn, each call created a new edge, until the tree was full.
func TestRegressionTheTreeFillsUp(t *testing.T) {
	c, _ := clocked(t, collector.Options{MaxMemory: collector.MemoryFor(collector.Options{}, 100)})
	ctx, p, _ := c.Enter(t.Context(), "parent", collector.Origin("a"))
	defer p.Exit(nil)
	_, e, _ := c.Enter(ctx, "db")
	e.Exit(nil)
	for i := range 200 {
		_, e, _ := c.Enter(t.Context(), fmt.Sprint("filler", i))
		e.Exit(nil)
	}
	for range 300 {
		for _, opts := range [][]collector.CallOption{nil, {collector.Origin("b")}} {
			_, e, _ := c.Enter(ctx, "db", opts...)
			e.Exit(nil)
		}
	}
	_, e, _ = c.Enter(ctx, "filler1")
	e.Exit(nil)
	for _, n := range c.Tree().Children()[0].Children() {
		if n.Name() == "parent" && (len(n.Children()) < 2 || n.Children()[0].Name() != "db") {
			t.Errorf("the children of the parent are %v", n.Children())
		}
	}
}

// Regression: if there was no memory for the leaf of a call, the call was recorded for the origin Other. The limit on
// the call's own origin then did not apply to the call.
func TestRegressionALimitIsEscapedWhenLeavesAreFull(t *testing.T) {
	c, _ := clocked(t, collector.Options{MaxMemory: collector.MemoryFor(collector.Options{}, 10)})
	limit(t, c, collector.Limit{Resource: "a", Origin: "bad", Count: 1})
	for i := range 20 {
		_, e, _ := c.Enter(t.Context(), "a", collector.Origin(fmt.Sprint(i)))
		e.Exit(nil)
	}
	passed := 0
	for range 10 {
		if _, _, err := c.Enter(t.Context(), "a", collector.Origin("bad")); err == nil {
			passed++
		}
	}
	if passed != 1 {
		t.Errorf("%d passed", passed)
	}
}

// Regression: counts of blocks by reason overflowed to negative numbers. In counts of exceptions by class, a batch
// counted as one call.
func TestRegressionTallies(t *testing.T) {
	c, _ := clocked(t, collector.Options{ExceptionClass: func(error) string { return "x" }})
	for range 2 {
		c.Block(t.Context(), "a", "r", collector.Batch(math.MaxInt64))
	}
	for reason, n := range c.Resource("a").Blocks() {
		if n != math.MaxInt64 {
			t.Errorf("%s: %d", reason, n)
		}
	}
	_, e, _ := c.Enter(t.Context(), "b", collector.Batch(5))
	e.Exit(errBad)
	for class, n := range c.Resource("b").Exceptions() {
		if n != 5 {
			t.Errorf("%s: %d", class, n)
		}
	}
}

// Regression: if the time in StartedAt was far in the future or the zero time, the response time of the call was 292
// years.
func TestRegressionStartedAt(t *testing.T) {
	for at, want := range map[time.Time]time.Duration{
		epoch:                            2 * time.Second,
		epoch.Add(500 * ms):              1500 * ms,
		epoch.Add(time.Hour):             time.Second,
		time.Unix(math.MaxInt64/1000, 0): time.Second,
		{}:                               time.Second,
	} {
		c, f := clocked(t, collector.Options{})
		f.set(time.Second)
		_, e, _ := c.Enter(t.Context(), "a", collector.StartedAt(at))
		f.set(2 * time.Second)
		e.Exit(nil)
		if rt := c.Resource("a").Snapshot(nil).Total.RTMax; rt != want {
			t.Errorf("StartedAt(%v): rt %v, want %v", at, rt, want)
		}
	}
}

// Regression: printing a context read the fields of its call by reflection, while another goroutine ended the call. The
// race detector reports this.
func TestRegressionPrintingAContext(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	ctx, e, _ := c.Enter(t.Context(), "a")
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Exit(nil)
	}()
	_ = fmt.Sprintf("%v %+v", ctx, ctx)
	<-done
}

// Regression: if the clock showed a time before 1970, no leaf was retired.
func TestRegressionBefore1970(t *testing.T) {
	f := new(fakeClock)
	f.set(-100 * 365 * 24 * time.Hour)
	c := newCollector(
		t,
		collector.Options{Now: f.now, RetireAfter: 2 * time.Minute, Windows: node.Options{History: time.Minute}},
	)
	e := c.Resource("a").Enter()
	e.Exit(nil)
	f.add(time.Hour)
	c.Seal()
	if h := c.Health(); h.Leaves != 0 {
		t.Errorf("%+v", h)
	}
}

// Regression: if a View was read once at a reading in the future, this read moved the timeline of the whole process to
// the reading. No second of any resource was sealed until the clock had caught up.
func TestRegressionAReadingAheadMovesNothing(t *testing.T) {
	for name, read := range map[string]func(v *node.View, now leap.Reading){
		"Window":   func(v *node.View, now leap.Reading) { v.Window(now) },
		"Minute":   func(v *node.View, now leap.Reading) { v.Minute(now) },
		"PassQPS":  func(v *node.View, now leap.Reading) { v.PassQPS(now) },
		"Snapshot": func(v *node.View, now leap.Reading) { v.Snapshot(now, nil) },
		"Waiting":  func(v *node.View, now leap.Reading) { v.Waiting(now) },
	} {
		c, f := clocked(t, collector.Options{})
		a, b := c.Resource("a"), c.Resource("b")
		for i := range 5 {
			now := c.Timeline().Now()
			for _, r := range []*collector.Resource{a, b} {
				e := r.Enter()
				e.Exit(nil)
			}
			read(a.View().Node(), now.Add(time.Hour))
			read(c.Inbound().Node(), now.Add(time.Hour))
			if open := c.Timeline().At(now.Add(time.Hour)); open != c.Timeline().At(now) {
				t.Fatalf("%s: second %+v is open at %v", name, open, now)
			}
			f.add(time.Second)
			open := c.Seal().Open
			for _, r := range []*collector.Resource{a, b} {
				m, ok := r.View().Node().Second(open - 1)
				if !ok || m.Pass != 1 || m.Complete != 1 ||
					!m.Start.Equal(f.now().Add(-time.Second).Truncate(time.Second)) {
					t.Fatalf("%s: second %d of %s is %+v (%t) at %v", name, i, r.Name(), m, ok, f.now())
				}
			}
		}
	}
}

// Regression: if ExceptionClass panicked or ended its goroutine, the exception had no class. The counts by class then
// added up to less than the number of exceptions. The test also lets Exception panic or end its goroutine. It checks
// that each call ends exactly once.
func TestRegressionAnExceptionWithoutAClass(t *testing.T) {
	for way, end := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for _, broken := range []string{"Exception", "ExceptionClass"} {
			t.Run(broken+" "+way, func(t *testing.T) {
				at := func(here string) {
					if here == broken {
						end()
					}
				}
				c := newCollector(t, collector.Options{
					Exception:      func(error) bool { at("Exception"); return true },
					ExceptionClass: func(error) string { at("ExceptionClass"); return "bad" },
				})
				r := c.Resource("a")
				calls := []func(){
					func() { e := r.Enter(); defer e.Exit(errBad); e.Exit(errBad) },
					func() { e := r.Enter(); e.ExitTrace(errBad, collector.Code{}, "id") },
					func() { _ = r.Do(func() error { return errBad }) },
					func() { _ = c.Do(t.Context(), "a", func(context.Context) error { return errBad }) },
				}
				for _, call := range calls {
					done := make(chan any)
					go func() {
						var v any
						defer func() { done <- v }()
						defer func() { v = recover() }()
						call()
					}()
					if v := <-done; way == "panic" && v != "boom" {
						t.Errorf("the call panics with %v, want boom", v)
					}
				}
				var sum int64
				for class, n := range r.Exceptions() {
					if (class == collector.Unspecified) != (broken == "ExceptionClass") {
						t.Errorf("%d exceptions have the class %q", n, class)
					}
					sum += n
				}
				n := int64(len(calls))
				if s := r.Snapshot(nil); s.Total.Complete != n || s.Total.Exception != n || sum != n ||
					s.InFlight != 0 {
					t.Errorf("%d in classes, %d in flight, %+v", sum, s.InFlight, s.Total)
				}
			})
		}
	}
}

// noDone is a user-defined context. Its Done method calls the function in the field end, which panics or ends the
// goroutine.
type noDone struct {
	context.Context
	end func()
}

func (c noDone) Done() <-chan struct{} { c.end(); return nil }

// Regression: the Done method of a context panicked or ended its goroutine after a prioritized call with this context
// had borrowed a pass. The call passed in the next bucket anyway, and stayed in flight for ever.
func TestRegressionAContextPanickedWhileItsCallWaited(t *testing.T) {
	for way, end := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		c, f := clocked(t, collector.Options{})
		limit(t, c, collector.Limit{Resource: "a", Count: 1})
		r := c.Resource("a")
		e, _ := r.TryEnter()
		e.Exit(nil)
		f.set(600 * ms)
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			_, _, _ = c.Enter(noDone{t.Context(), end}, "a", collector.Prioritized())
		}()
		<-done
		f.set(10 * time.Second)
		if s := r.Snapshot(nil); s.Total.Pass != 1 || s.InFlight != 0 {
			t.Errorf("%s: %d in flight, %+v", way, s.InFlight, s.Total)
		}
	}
}

// noErr is a user-defined context that is canceled. Its Err method calls the function in the field err.
type noErr struct {
	context.Context
	err func() error
}

func (c noErr) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (c noErr) Err() error { return c.err() }

// Regression: if the Err method of a context panicked or ended its goroutine while a call with this context waited, the
// call stayed in flight for ever. If Err of a canceled context returned nil, Enter also returned nil, but did not count
// the call.
func TestRegressionErrOfContextPanickedOrReturnedNil(t *testing.T) {
	for way, err := range map[string]func() error{
		"panic":  func() error { panic("boom") },
		"Goexit": func() error { runtime.Goexit(); return nil }, "nil": func() error { return nil },
	} {
		c, f := clocked(t, collector.Options{})
		limit(t, c, collector.Limit{Resource: "a", Count: 1})
		r := c.Resource("a")
		e, _ := r.TryEnter()
		e.Exit(nil)
		f.set(600 * ms)
		passed := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			_, _, err := c.Enter(noErr{context.Background(), err}, "a", collector.Prioritized())
			passed = err == nil
		}()
		<-done
		f.set(10 * time.Second)
		if s := r.Snapshot(nil); s.Total.Pass != 1 || s.InFlight != 0 || passed {
			t.Errorf("%s: %d in flight, %+v, passed: %t", way, s.InFlight, s.Total, passed)
		}
	}
}

// Regression: a caller kept a handle, and the resource of the handle was retired. When the caller used the handle while
// the table was full, the handle switched to _other. From then on, calls through the handle were recorded for _other as
// long as _other was busy, even if the table had a free slot again, and even if the name of the handle had a new
// resource.
func TestRegressionKeptHandleAfterRetirement(t *testing.T) {
	for name, registered := range map[string]bool{"free slot": false, "new resource": true} {
		c, f := clocked(
			t,
			collector.Options{
				MaxResources: 2,
				RetireAfter:  2 * time.Minute,
				Windows:      node.Options{History: time.Minute},
			},
		)
		r, stays := c.Resource("a"), c.Resource("stays")
		call := func(r *collector.Resource) {
			e := r.Enter()
			e.Exit(nil)
		}
		pass := func(d time.Duration, busy ...*collector.Resource) {
			for range d / (20 * time.Second) {
				f.add(20 * time.Second)
				for _, r := range busy {
					call(r)
				}
				c.Seal()
			}
		}
		call(r)
		pass(4*time.Minute, stays) // "a" is idle for these 4 minutes, so it is retired
		new := c.Resource("new")
		call(new) // the table is full: it has the resources "stays" and "new"
		call(r)
		if got := c.Health().Overflow; got != 1 {
			t.Fatalf("%s: %d calls overflowed, want 1", name, got)
		}
		call(c.Resource("another")) // "another" overflows, so its calls keep _other busy
		pass(4*time.Minute, stays, c.Resource("another"))
		if registered {
			call(c.Resource("a"))
		}
		before := c.Health().Overflow
		call(r)
		call(r)
		if got, want := c.Resource("a").Snapshot(nil).Total.Pass, map[bool]int64{
			false: 2,
			true:  3,
		}[registered]; got != want ||
			c.Health().Overflow != before {
			t.Errorf(
				"%s: the resource has %d calls, want %d; %d more overflowed",
				name,
				got,
				want,
				c.Health().Overflow-before,
			)
		}
	}
}

// Regression: a name used quota while its calls were recorded for _other, and then got its own resource. After a change
// of limits, the new limits did not count the earlier passes of the name: 20 calls passed in a second under a limit of
// 10.
func TestRegressionReloadForgotPassesRecordedForOther(t *testing.T) {
	for name, reload := range map[string][][]collector.Limit{
		"no limits":  {{}},
		"others":     {{{Resource: "y", Count: 5}}},
		"all others": {{{Resource: "*", Grade: collector.Concurrency, Count: 50}}, {}},
	} {
		c, f := clocked(
			t,
			collector.Options{
				MaxResources: 1,
				RetireAfter:  2 * time.Minute,
				Windows:      node.Options{History: time.Minute},
			},
		)
		web := collector.Limit{Resource: "*", Origin: "web", Count: 8}
		full, _ := c.Resource("full"), c.Resource("over")
		e := full.Enter()
		limit(t, c, qps("*", 10), web)
		list := pass(c, "x", 20, collector.Origin("web"))
		if exit(list); len(list) != 8 {
			t.Fatalf("%s: %d of web passed, want 8", name, len(list))
		}
		exit(pass(c, "x", 1))
		e.Exit(nil)
		f.add(1)
		// A limit that names "x" exactly, without a *, gives the name "x" its own resource.
		limit(t, c, qps("x", 9), web)
		if n := len(pass(c, "x", 20)); n != 0 {
			t.Fatalf("%s: %d more passed, want none", name, n)
		}
		for _, limits := range reload {
			limit(t, c, limits...)
		}
		limit(t, c, qps("x", 10), web)
		if n := len(pass(c, "x", 20, collector.Origin("web"))); n != 0 {
			t.Errorf("%s: %d more of web passed after the reload, want none", name, n)
		}
		if n := len(pass(c, "x", 20)); n != 1 {
			t.Errorf("%s: %d more passed after the reload, want 1", name, n)
		}
		f.add(time.Second)
		if n := len(pass(c, "x", 20)); n != 10 {
			t.Errorf("%s: %d passed a second later, want 10", name, n)
		}
	}
}
