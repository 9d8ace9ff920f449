package collector_test

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// A View includes every call that was counted before the View is read. This holds even while calls create new leaves,
// because a new leaf is added to its views before a call can find the leaf.
func TestViewsHaveALeafBeforeCallsReachIt(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for range 20 {
		c, err := collector.New(collector.Options{MaxOrigins: 1000})
		if err != nil {
			t.Fatal(err)
		}
		view := c.Resource("r").View()
		var counted atomic.Int64
		var calls, reader sync.WaitGroup
		var done atomic.Bool
		// All goroutines use the same origins, so most calls find a leaf that another goroutine has just created.
		for range 4 {
			calls.Go(func() {
				for i := range 500 {
					c.Block(t.Context(), "r", "test", collector.Origin(strconv.Itoa(i)))
					counted.Add(1)
					if i%8 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		reader.Go(func() {
			for !done.Load() {
				least := counted.Load()
				if n := view.Snapshot(nil).Total.Block; n < least {
					t.Errorf("the view has %d calls, but %d were counted before it was read", n, least)
					return
				}
			}
		})
		calls.Wait()
		done.Store(true)
		reader.Wait()
		if t.Failed() {
			return
		}
	}
}

// A resource is retired only after it has been idle for RetireAfter. Idle time is measured in whole seconds, so the
// earliest retirement is RetireAfter plus one second after the last use. The test registers a resource at 12 different
// times relative to the sweeps, and checks the shortest time until retirement.
func TestResourceIsNotRetiredTooEarly(t *testing.T) {
	const after = 62 * time.Second
	earliest := time.Hour
	for phase := range 12 {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		c, err := collector.New(collector.Options{
			Now: func() time.Time { return now }, RetireAfter: after, Windows: node.Options{History: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		tick := func() {
			now = now.Add(time.Second)
			c.Seal()
		}
		for range phase {
			tick()
		}
		c.Resource("young") // the resource has no leaf, so the time of its creation counts as its last use
		begin := now
		for c.Health().Retired == 0 && now.Sub(begin) < time.Hour {
			tick()
		}
		earliest = min(earliest, now.Sub(begin))
	}
	if earliest != after+time.Second {
		t.Errorf("the earliest retirement is after %v, want %v", earliest, after+time.Second)
	}
}

// ticking returns a Collector that retires leaves after 62 s by default. It also returns a function that advances the
// clock second by second, and seals each second.
func ticking(t *testing.T, o collector.Options) (*collector.Collector, func(seconds int)) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o.Now, o.Windows.History = func() time.Time { return now }, time.Minute
	if o.RetireAfter == 0 {
		o.RetireAfter = 62 * time.Second
	}
	c, err := collector.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, func(seconds int) {
		for range seconds {
			now = now.Add(time.Second)
			c.Seal()
		}
	}
}

// A resource with a name in Options.Given is never retired or evicted, however long it is idle and however many names
// arrive.
func TestGivenResourcesStay(t *testing.T) {
	c, pass := ticking(t, collector.Options{Given: []string{"given"}, MaxResources: 2, RetireAfter: -1})
	given := c.Resource("given")
	given.Block("")
	for i := range 10 {
		pass(100)
		c.Resource(strconv.Itoa(i)).Block("")
		if c.Resource("given") != given {
			t.Fatalf("the name given has another resource after %d new names", i+1)
		}
	}
}

// The edges of retired nodes are removed from the tree. Otherwise the tree would fill up with these edges.
func TestRetiredEdgesAreRemoved(t *testing.T) {
	c, pass := ticking(t, collector.Options{MaxMemory: collector.MemoryFor(collector.Options{}, 8)})
	for i := range 20 {
		name := strconv.Itoa(i)
		ctx, up, _ := c.Enter(t.Context(), "up "+name)
		_, down, _ := c.Enter(ctx, "down "+name)
		down.Exit(nil)
		up.Exit(nil)
		pass(80)
	}
	// The resource "caller" is never idle. Only the callees are retired.
	for i := range 20 {
		for range 2 {
			ctx, up, _ := c.Enter(t.Context(), "caller")
			_, down, _ := c.Enter(ctx, "callee "+strconv.Itoa(i))
			down.Exit(nil)
			up.Exit(nil)
			pass(40)
		}
	}
	if h := c.Health(); h.TreeOverflow != 0 || h.LeafOverflow != 0 {
		t.Errorf("%+v", h)
	}
}

// A kept View of the empty origin never reads the calls of other origins, even after the leaves of the empty origin
// were retired.
func TestNodeOfTheEmptyOrigin(t *testing.T) {
	c, pass := ticking(t, collector.Options{})
	view := c.Resource("r").Origin("")
	c.Block(t.Context(), "r", "")
	for range 100 {
		c.Block(t.Context(), "r", "", collector.Origin("b"))
		pass(1)
	}
	if n := view.Snapshot(nil).Total.Block; n != 0 {
		t.Errorf("the view has %d calls after its origin was retired", n)
	}
	if n := view.Node(); n != nil && n.Snapshot(c.Timeline().Now(), nil).Total.Block > 1 {
		t.Errorf("the Node of the view has %d calls", n.Snapshot(c.Timeline().Now(), nil).Total.Block)
	}
}
