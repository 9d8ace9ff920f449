package collector_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// heapAlloc returns the size of the live heap in bytes.
func heapAlloc() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A service has more names and origins than fit into MaxMemory. All of them have a call in every second, for longer
// than the history. At the end, the heap of the Collector is below MaxMemory. The result of Memory is also below
// MaxMemory, and differs from the heap by less than a tenth. No call is lost.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and on one goroutine")
	}
	for name, limits := range map[string][]collector.Limit{
		"without limits": nil,
		"with limits": {
			{Resource: "*", Count: 1000},
			{Resource: "*", Grade: collector.Concurrency, Count: 1000},
			{Resource: "GET /2*", Origin: "origin 1", Count: 500},
			{Resource: "*", Count: 1, DryRun: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			const names, origins, seconds = 500, 3, 660
			var resources [names]string
			for i := range resources {
				resources[i] = fmt.Sprint("GET /", i)
			}
			before := heapAlloc()
			o := collector.Options{MaxOrigins: 20}
			o.MaxMemory = collector.MemoryFor(o, 150)
			c, f := clocked(t, o)
			limit(t, c, limits...)
			for s := range seconds {
				for i, resource := range resources {
					for n := range origins {
						f.add(time.Duration(1+i%7) * time.Microsecond)
						began := f.now().Add(-time.Duration(1+(i*31+s*17+n)%40) * ms)
						_, e, err := c.Enter(context.Background(), resource, collector.StartedAt(began),
							collector.Origin(fmt.Sprint("origin ", n)), collector.Entrance("http"), collector.Inbound())
						if err != nil {
							t.Fatal(err)
						}
						e.ExitCode(nil, collector.HTTPStatus(200+i%3))
					}
				}
				f.set(time.Duration(s+1) * time.Second)
				c.Seal()
			}
			heap, metric, h := heapAlloc()-before, c.Memory(), c.Health()
			t.Logf("heap %d, metric %+v = %d, reserved %d of %d, %d leaves", heap, metric, metric.Sum(),
				h.MemoryReserved, o.MaxMemory, h.Leaves)
			if heap > o.MaxMemory || metric.Sum() > o.MaxMemory {
				t.Errorf("heap %d, metric %d, maximum %d", heap, metric.Sum(), o.MaxMemory)
			}
			if off := float64(metric.Sum()-heap) / float64(heap); math.Abs(off) > 0.1 {
				t.Errorf("the metric has %d bytes, the heap %d: %+.1f%%", metric.Sum(), heap, 100*off)
			}
			if h.LeafOverflow == 0 || h.Leaves < 100 {
				t.Errorf("%+v", h)
			}
			const calls = names * origins * seconds
			if n := c.Inbound().Snapshot(nil).Total.Complete; n != calls {
				t.Errorf("%d calls, want %d", n, calls)
			}
			runtime.KeepAlive(c)
		})
	}
}

// exhausted returns a Collector without memory for new leaves. Its resource "a" has one leaf.
func exhausted(t *testing.T, limits ...collector.Limit) (*collector.Collector, *fakeClock) {
	t.Helper()
	var o collector.Options
	o.MaxMemory = collector.MemoryFor(o, 40)
	c, f := clocked(t, o)
	limit(t, c, limits...)
	e := c.Resource("a").Enter()
	e.Exit(nil)
	for i := 0; c.Resource(fmt.Sprint("filler ", i)).Name() != collector.Other; i++ {
		e := c.Resource(fmt.Sprint("filler ", i)).Enter()
		e.Exit(nil)
	}
	return c, f
}

// If there is no memory for the leaf of a call, the resource Other records the call. The limits on the name of the call
// still apply. Each of these limits counts all calls of the name: the calls that Other records, and the calls that the
// resource with this name records.
func TestLimitsApplyWithoutMemory(t *testing.T) {
	// The function options returns the options of call n. There are 6 combinations of options, and each needs its own
	// leaf.
	options := func(n int) []collector.CallOption {
		opts := []collector.CallOption{collector.Origin([]string{"", "x", "bad"}[n%3])}
		if n/3%2 == 1 {
			opts = append(opts, collector.Inbound())
		}
		return opts
	}
	passed := func(
		c *collector.Collector, name string, n int, opts ...collector.CallOption,
	) (entries []*collector.Entry) {
		for i := range n {
			_, e, err := c.Enter(t.Context(), name, append(options(i), opts...)...)
			if err == nil {
				entries = append(entries, &e)
			}
		}
		return entries
	}
	for name, l := range map[string]collector.Limit{
		"qps":                    {Resource: "a", Count: 7},
		"qps of a pattern":       {Resource: "a*", Count: 7},
		"concurrency":            {Resource: "a", Count: 6, Grade: collector.Concurrency},
		"concurrency, a pattern": {Resource: "*", Count: 6, Grade: collector.Concurrency},
	} {
		t.Run(name, func(t *testing.T) {
			c, f := exhausted(t, l)
			for range 3 {
				entries := passed(c, "a", 24)
				if len(entries) != 6 {
					t.Fatalf("%d passed, want 6", len(entries))
				}
				for _, e := range entries {
					e.Exit(nil)
				}
				f.add(2 * time.Second)
				// The leaf of "a" records this call. No limit refuses the call, but a limit on QPS counts it in the
				// next round, so 7 - 1 = 6 calls pass in that round.
				e := c.Resource("a").Enter()
				defer e.Exit(nil)
				if l.Grade == collector.Concurrency {
					e.Exit(nil)
				}
			}
			own, other := c.Resource("a").Snapshot(nil).Total, c.Resource(collector.Other).Snapshot(nil).Total
			if own.Pass+other.Pass < 22 || other.Block == 0 || c.Health().LeafOverflow == 0 {
				t.Errorf("%+v, %+v, %+v", own, other, c.Health())
			}
		})
	}
	t.Run("origin", func(t *testing.T) {
		c, _ := exhausted(t, collector.Limit{Resource: "a", Origin: "bad", Count: 2})
		if n := len(passed(c, "a", 24)); n != 16+2 {
			t.Errorf("%d passed, want 16 of other origins and 2 of the limited origin", n)
		}
	})
	t.Run("fallback", func(t *testing.T) {
		c, _ := exhausted(t, collector.Limit{Resource: "a", Count: 5}, collector.Limit{Resource: "b*", Count: 3})
		c.Resource("a")
		if n := len(passed(c, "c", 24, collector.FallbackResource("a"))); n != 4 {
			t.Errorf("%d calls with the fallback passed, want 4: the limit is 5, and one call has passed before", n)
		}
		if n := len(passed(c, "b1", 24, collector.FallbackResource("a"))); n != 0 {
			t.Errorf("%d calls of another name with the fallback passed, want 0", n)
		}
	})
	t.Run("a limit on Other", func(t *testing.T) {
		c, _ := exhausted(t, collector.Limit{Resource: collector.Other, Count: 5})
		if n := len(passed(c, "a", 24)); n != 4+5 {
			t.Errorf("%d passed, want 4 of the leaf and 5 of Other", n)
		}
	})
}

// Every call is counted once in each view that includes the call, even if there is no memory for the leaf of the call.
func TestTotalsWithoutMemory(t *testing.T) {
	c, f := exhausted(t)
	root, inbound := c.Tree().View().Snapshot(nil).Total.Pass, int64(0)
	for i := range 200 {
		ctx, e, _ := c.Enter(t.Context(), "a", collector.Inbound(), collector.Origin(fmt.Sprint(i)))
		_, below, _ := c.Enter(ctx, fmt.Sprint("below ", i))
		f.add(ms)
		below.Exit(nil)
		e.Exit(nil)
		root, inbound = root+1, inbound+1
		e = c.Resource("a").Enter()
		e.Exit(nil)
		root++
	}
	f.add(time.Second)
	if n := c.Tree().View().Snapshot(nil).Total.Complete; n != root {
		t.Errorf("the root has %d calls, want %d", n, root)
	}
	if n := c.Inbound().Snapshot(nil).Total.Complete; n != inbound {
		t.Errorf("%d inbound calls, want %d", n, inbound)
	}
	if n := c.Resource(collector.Other).Snapshot(nil).Total.Complete; n != 400 {
		t.Errorf("Other has %d calls, want 400", n)
	}
}

// Clients make up many origins for five resources. The leaves of these origins use at most three quarters of the
// memory, so new resources still get leaves.
func TestOriginsLeaveMemoryToNames(t *testing.T) {
	var o collector.Options
	o.MaxMemory = collector.MemoryFor(o, 100)
	c, _ := clocked(t, o)
	for n := range 50 {
		for i := range 5 {
			c.Block(t.Context(), fmt.Sprint("old ", i), "", collector.Origin(fmt.Sprint(n)))
		}
	}
	leaves := c.Health().Leaves
	var recorded int
	for i := range 50 {
		name := fmt.Sprint("new ", i)
		c.Block(t.Context(), name, "", collector.Origin("web"))
		if c.Resource(name).Snapshot(nil).Total.Block > 0 && c.Resource(name).Name() == name {
			recorded++
		}
	}
	if recorded < 15 {
		t.Errorf("%d of 50 new names have leaves, after %d leaves of old names", recorded, leaves)
	}
}

// Ten thousand busy resources with one origin each fit into the default MaxMemory. The default of MaxMemory is higher
// if the options allow more names or a longer history.
func TestDefaultMemory(t *testing.T) {
	for name, o := range map[string]collector.Options{
		"defaults":       {},
		"more names":     {MaxResources: 12_000, Given: []string{"GET /1", "given"}},
		"longer history": {Windows: node.Options{History: time.Hour, Histograms: time.Hour}},
	} {
		c, _ := clocked(t, o)
		for i := range max(o.MaxResources, collector.DefaultMaxResources) {
			c.Block(t.Context(), fmt.Sprint("GET /", i), "", collector.Origin("web"), collector.Entrance("http"))
		}
		h := c.Health()
		if h.LeafOverflow+h.Overflow > 0 || h.MemoryReserved > h.MaxMemory ||
			h.MaxMemory != collector.DefaultMaxMemory == (name == "defaults") {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if _, err := collector.New(collector.Options{MaxMemory: 1 << 10}); err == nil ||
		!strings.Contains(err.Error(), "MaxMemory: 1024 bytes; at least ") {
		t.Error(err)
	}
}

// If a resource takes more memory than it has reserved, the excess counts as reserved.
func TestExcessIsReserved(t *testing.T) {
	c, f := clocked(t, collector.Options{})
	block := func(reason string) {
		c.Resource("a").Block(reason)
		f.add(11 * time.Second)
		c.Seal() // a sweep is due 10 s after the previous sweep, so Seal sweeps and adds up the excess
	}
	block("")
	before := c.Health().MemoryReserved
	for i := range 15 {
		block(strings.Repeat(fmt.Sprint(i%10), 150) + fmt.Sprint(i))
	}
	if n := c.Health().MemoryReserved - before; n < 500 || n > 15*200 {
		t.Errorf("%d more bytes are reserved for 15 long reasons, and %+v are in use", n, c.Memory())
	}
}

// The result of Collector.Memory includes the bytes of calls in flight until these calls end. While the calls of the
// test are in flight, the result and the live heap have grown by nearly the same number of bytes. The difference is at
// most a tenth of the growth of the heap, or 20,000 bytes if a tenth is less. There are more calls than slots in
// Collector.running, so some calls have no slot.
func TestMemoryOfCallsInFlight(t *testing.T) {
	const calls = 60_000 // more calls than Collector.running has slots
	for name, x := range map[string]struct {
		limits []collector.Limit
		name   string // name of the calls; there is no memory for a resource "over"
		trace  bool
		handle bool
		least  int64 // lower bound of Memory.Calls while all calls are in flight
	}{
		"with a context":  {name: "a", least: calls * 32},
		"with a trace ID": {name: "a", trace: true, least: calls * (32 + 32 + 32)},
		"by a handle":     {name: "a", handle: true},
		"that a dry run would refuse": {
			name: "a", least: calls*32 + calls/2*64,
			limits: []collector.Limit{{Resource: "a", Grade: collector.Concurrency, Count: calls / 3, DryRun: true}},
		},
		"of an overflowing name": {
			name: "over", least: calls * (32 + 64),
			limits: []collector.Limit{{Resource: "over*", Grade: collector.Concurrency, Count: 2 * calls}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := exhausted(t, x.limits...)
			entries, contexts := make([]collector.Entry, calls), make([]context.Context, calls)
			heap, metric := heapAlloc(), c.Memory()
			for i := range entries {
				if x.handle {
					entries[i] = c.Resource(x.name).Enter()
					continue
				}
				var opts []collector.CallOption
				if x.trace {
					opts = append(opts, collector.TraceID(fmt.Sprintf("%032x", i)))
				}
				var err error
				if contexts[i], entries[i], err = c.Enter(context.Background(), x.name, opts...); err != nil {
					t.Fatal(err)
				}
			}
			heap, during := heapAlloc()-heap, c.Memory()
			more := during.Sum() - metric.Sum()
			t.Logf("heap %d, metric %d, %d of them for calls", heap, more, during.Calls)
			if off := more - heap; max(off, -off) > max(heap/10, 20_000) {
				t.Errorf("%d calls take %d bytes of heap, and %d by the metric", calls, heap, more)
			}
			if during.Calls < x.least || metric.Calls != 0 {
				t.Errorf("the metric has %d bytes of calls, want at least %d; %d before the calls",
					during.Calls, x.least, metric.Calls)
			}
			for i := range entries {
				entries[i].Exit(nil)
				entries[i].Exit(nil)
			}
			if n := c.Memory().Calls; n != 0 {
				t.Errorf("the metric has %d bytes of calls after all calls have ended", n)
			}
			runtime.KeepAlive(contexts)
			runtime.KeepAlive(c)
		})
	}
}
