package collector_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// A client invents a million names, and uses them as names of resources, origins and entrances. Every call is counted.
// After the first tenth of the names, the memory grows by at most 4 MiB. Health counts the calls that exceed the bounds
// of the Options.
func TestAMillionNames(t *testing.T) {
	million := 1_000_000
	if testing.Short() {
		million = 20_000
	}
	o := collector.Options{MaxOrigins: 10, MaxEntrances: 10}
	o.MaxMemory = collector.MemoryFor(o, 500)
	c, f := clocked(t, o)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	flood := func(from, to int) {
		for i := from; i < to; i++ {
			name := fmt.Sprint("name ", i)
			switch i % 4 {
			case 0:
				e := c.Resource(name).Enter()
				e.Exit(nil)
			case 1:
				_, e, _ := c.Enter(context.Background(), "one", collector.Origin(name), collector.Inbound())
				e.Exit(nil)
			case 2:
				_, e, _ := c.Enter(context.Background(), name, collector.Origin(name), collector.Entrance(name))
				e.Exit(nil)
			case 3:
				ctx := context.Background()
				for d := range 5 {
					var e collector.Entry
					ctx, e, _ = c.Enter(ctx, fmt.Sprint(name, " ", d))
					defer e.Exit(nil)
					e.Exit(nil)
				}
			}
			if i%1000 == 0 {
				f.add(100 * ms)
				c.Seal()
			}
		}
	}
	flood(0, million/10)
	before, leaves := heap(), c.Health().Leaves
	flood(million/10, million)
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("the memory grew by %d bytes for %d more names", grown, million-million/10)
	}
	want := int64(million/4 + million/4 + million/4 + 5*(million/4))
	var sum node.Counts
	for _, r := range c.Seal().Resources {
		sum = sum.Add(r.Snapshot(nil).Total)
	}
	if sum.Pass != want || sum.Complete != want {
		t.Errorf("%d passes and %d completions, want %d", sum.Pass, sum.Complete, want)
	}
	if root := c.Tree().View().Snapshot(nil).Total; root.Pass != int64(million) {
		t.Errorf("the root has %d passes, want %d", root.Pass, million)
	}
	if in := c.Inbound().Snapshot(nil).Total; in.Pass != int64(million/4) {
		t.Errorf("%d inbound passes, want %d", in.Pass, million/4)
	}
	h := c.Health()
	if h.Resources > 501 || h.Leaves != leaves || h.Leaves > 500+4 || h.Entrances > 11 ||
		c.Memory().Sum() > h.MaxMemory {
		t.Errorf("%+v, with %d leaves before", h, leaves)
	}
	if h.Overflow == 0 || h.OriginOverflow == 0 || h.EntranceOverflow == 0 || h.LeafOverflow+h.TreeOverflow == 0 {
		t.Errorf("%+v", h)
	}
}

// A client can send any text as the origin of a call. The Collector shortens long origins, replaces invalid UTF-8, and
// records origins beyond MaxOrigins as Other.
func TestOriginsAreCleaned(t *testing.T) {
	c, _ := clocked(t, collector.Options{MaxOrigins: 2})
	for _, origin := range []string{strings.Repeat("x", 10_000), "a\xff\xfeb", "third", "fourth", ""} {
		_, e, _ := c.Enter(t.Context(), "a", collector.Origin(origin))
		e.Exit(nil)
	}
	got := origins(c.Resource("a"))
	if len(got) != 4 || got[0] != "" || got[1] != collector.Other || got[2] != "a\uFFFDb" ||
		len(got[3]) != collector.MaxNameLength {
		t.Errorf("%q", got)
	}
	if n := c.Resource("a").Origin(collector.Other).Window().Pass; n != 2 || c.Health().OriginOverflow != 2 {
		t.Errorf("%d passes of the origin Other, %+v", n, c.Health())
	}
}

// A name in a limit always gets a resource, and an origin in a limit is always recorded separately. A client can
// therefore not evade a limit by filling the table of resources or the table of origins first.
func TestNamesOfLimitsHaveASlot(t *testing.T) {
	c, _ := clocked(t, collector.Options{MaxResources: 2, MaxOrigins: 1})
	limit(t, c, collector.Limit{Resource: "login", Count: 1}, collector.Limit{Resource: "x*", Origin: "bot", Count: 0})
	for _, name := range []string{"a", "b", "c"} {
		c.Enter(t.Context(), name, collector.Origin("one"))
	}
	c.Enter(t.Context(), "a", collector.Origin("two"))
	if _, err := c.Resource("login").TryEnter(); err != nil {
		t.Error(err)
	}
	if _, err := c.Resource("login").TryEnter(); err == nil {
		t.Error("a second call of login passed")
	}
	c.Enter(t.Context(), "xa", collector.Origin("one"))
	limit(t, c, collector.Limit{Resource: "_other", Origin: "bot", Count: 0})
	c.Enter(t.Context(), "xa", collector.Origin("one"))
	if _, _, err := c.Enter(t.Context(), "xa", collector.Origin("bot")); err == nil {
		t.Error("the origin bot evades its limit")
	}
	if c.Resource("login").Name() != "login" || c.Resource("c").Name() != collector.Other {
		t.Error("login has no resource, or c has one")
	}
}

// Made-up names do not evade a limit with a pattern. MaxResources is 2. Two names therefore get resources, and two of
// the other names get their own quotas. All further names share one quota for each pattern that they match.
func TestPatternsLimitTheOverflow(t *testing.T) {
	c, _ := clocked(t, collector.Options{MaxResources: 2})
	limit(
		t,
		c,
		collector.Limit{Resource: "/api/*", Count: 5},
		collector.Limit{Resource: "/bot/*", Origin: "bot", Count: 0},
	)
	passed := map[string]int{}
	for i := range 20 {
		for _, dir := range []string{"/api/", "/web/", "/bot/"} {
			_, e, err := c.Enter(t.Context(), fmt.Sprint(dir, i), collector.Origin("bot"))
			if err == nil {
				passed[dir]++
			}
			e.Exit(nil)
		}
	}
	// /api/0 and /web/0 have the two resources; /api/1 and /api/2 have their own quotas. The calls of /api/0, /api/1
	// and /api/2 pass: 3 calls. The other 17 names below /api/ share one quota of 5. Together, 3 + 5 = 8 calls below
	// /api/ pass. No limit applies to /web/. The limit of 0 refuses all calls below /bot/. A name keeps no quota if all
	// its calls are refused.
	if fmt.Sprint(passed) != "map[/api/:8 /web/:20]" {
		t.Errorf("%v", passed)
	}
	// Other records all calls except the calls of /api/0 and /web/0. Below /api/, 7 calls pass and 12 are refused.
	// Below /web/, 19 calls pass. Below /bot/, 20 calls are refused. These are 7 + 19 = 26 passes and 12 + 20 = 32
	// blocks.
	if s := c.Resource(collector.Other).Snapshot(nil); s.Total.Pass != 26 || s.Total.Block != 32 {
		t.Errorf("%+v", s.Total)
	}
}

// retiring returns a Collector that retires leaves after two minutes without a call.
func retiring(t *testing.T) (*collector.Collector, *fakeClock) {
	return clocked(t, collector.Options{RetireAfter: 2 * time.Minute, Windows: node.Options{History: time.Minute}})
}

// Idle resources, origins, entrances and tree nodes are removed. The counts of removed items stay in the totals, and
// the records of the seconds in the history do not change.
func TestIdleIsRetired(t *testing.T) {
	c, f := retiring(t)
	call := func(name string, opts ...collector.CallOption) {
		_, e, _ := c.Enter(t.Context(), name, opts...)
		f.add(ms)
		e.Exit(nil)
	}
	old := c.Resource("old")
	e := old.Enter()
	e.Exit(nil)
	c.Resource("unused")
	call("mixed", collector.Origin("gone"), collector.Entrance("cron"), collector.Inbound())
	call("mixed", collector.Origin("stays"))
	ctx, up, _ := c.Enter(t.Context(), "up", collector.Entrance("cron"))
	_, below, _ := c.Enter(ctx, "below")
	below.Exit(nil)
	up.Exit(nil)
	leak := c.Resource("leak").Enter()
	root := c.Tree().View()
	before := root.Snapshot(nil).Total
	records := map[int64]node.MetricNode{}
	for range 150 {
		call("mixed", collector.Origin("stays"))
		f.add(time.Second)
		m := c.Seal()
		for i := m.Open - 59; i < m.Open; i++ {
			if rec, ok := root.Node().Second(i); ok {
				if was, there := records[i]; there && was != rec {
					t.Fatalf("second %d was %+v and is %+v", i, was, rec)
				}
				records[i] = rec
			}
		}
	}
	h := c.Health()
	if h.Resources != 2 || h.Retired != 4 || h.Leaves != 2 || h.Entrances != 1 {
		t.Errorf("%+v", h)
	}
	var names []string
	for _, r := range c.Seal().Resources {
		names = append(names, r.Name())
	}
	if got := strings.Join(names, " "); got != "mixed leak" {
		t.Errorf("resources %s", got)
	}
	if got, want := tree(c.Tree(), ""), "machine-root\n  _default\n    leak\n    mixed\n"; got != want {
		t.Errorf("tree\n%s", got)
	}
	if got := origins(c.Resource("mixed")); len(got) != 1 || got[0] != "stays" {
		t.Errorf("origins %v", got)
	}
	var h2 node.Histogram
	mixed := c.Resource("mixed").Snapshot(&h2)
	if mixed.Total.Pass != 152 || h2.Count() != 152 {
		t.Errorf("mixed %+v, histogram of %d", mixed.Total, h2.Count())
	}
	now := root.Snapshot(&h2)
	if now.Total.Pass != before.Pass+150 || now.Total.Complete != before.Complete+150 ||
		h2.Count() != now.Total.Complete {
		t.Errorf("root %+v, before %+v, histogram of %d", now.Total, before, h2.Count())
	}
	if in := c.Inbound().Snapshot(nil).Total.Pass; in != 1 {
		t.Errorf("inbound %d", in)
	}
	leak.Exit(nil) // the leaf of this call was not retired, because the call was in flight
	if s := c.Resource("leak").Snapshot(nil); s.InFlight != 0 || s.Total.Complete != 1 {
		t.Errorf("leak %+v", s)
	}

	// After the retirement of a resource, a call through its handle registers the name again, and a new series starts.
	// A later lookup of the name returns the new resource.
	if old.InFlight() != 0 || old.PassQPS() != 0 {
		t.Error("the retired handle is not idle")
	}
	e = old.Enter()
	e.Exit(nil)
	again := c.Resource("old")
	if s := again.Snapshot(nil); s.Total.Pass != 1 || old.Snapshot(nil) != s ||
		again.View().Node() != old.View().Node() {
		t.Errorf("the new resource has %+v, the retired handle %+v", s, old.Snapshot(nil))
	}
	f.add(time.Hour)
	c.Seal()
	if h := c.Health(); h.Leaves != 0 {
		t.Errorf("%+v", h)
	}
	e = old.Enter()
	e.Exit(nil)
	if s := old.Snapshot(nil); s.Total.Pass != 1 {
		t.Errorf("after two retirements, the handle has %+v", s)
	}
	_, e2, _ := c.Enter(ctx, "late") // this call is nested below a call with a retired leaf
	e2.Exit(nil)
	if s := c.Resource("late").Snapshot(nil); s.Total.Complete != 1 {
		t.Errorf("late %+v", s)
	}
	if got, want := tree(c.Tree(), ""), "machine-root\n  _default\n    old\n  cron\n    late\n"; got != want {
		t.Errorf("tree\n%s", got)
	}
}

// If all origins of a resource are in use, a sweep does not copy the map of origins. The sweep holds the Collector's
// lock while it searches the map for unused origins. The search must be fast, because the registration of a new name
// waits for the lock.
func TestOriginsThatAreAllInUseAreNotCopied(t *testing.T) {
	c, _ := retiring(t)
	for i := range 50 {
		if _, _, err := c.Enter(t.Context(), "busy", collector.Origin(fmt.Sprint("o", i))); err != nil {
			t.Fatal(err)
		}
	}
	r := c.Resource("busy")
	if n := testing.AllocsPerRun(100, func() { collector.DropOrigins(r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNegativeRetireAfterRetiresNothing(t *testing.T) {
	c, f := clocked(t, collector.Options{RetireAfter: -1})
	e := c.Resource("a").Enter()
	e.Exit(nil)
	for range 100 {
		f.add(time.Hour)
		c.Seal()
	}
	if h := c.Health(); h.Resources != 1 || h.Retired != 0 {
		t.Errorf("%+v", h)
	}
	if _, err := collector.New(collector.Options{RetireAfter: 601 * time.Second}); err == nil ||
		!strings.Contains(err.Error(), "RetireAfter: 10m1s; at least 10m2s") {
		t.Error(err)
	}
}

// If the table of resources is full, a new name evicts an idle resource, even if no exporter calls Seal.
func TestRetirementFreesSlots(t *testing.T) {
	c, f := clocked(t, collector.Options{MaxResources: 2, RetireAfter: 20 * time.Minute})
	for _, origin := range []string{"x", "y", "z"} {
		c.Block(t.Context(), "a", "", collector.Origin(origin))
	}
	for _, name := range []string{"a", "b", "c"} {
		e := c.Resource(name).Enter()
		e.Exit(nil)
	}
	f.add(time.Hour)
	e := c.Resource(collector.Other).Enter() // this call opens the current second, so a sweep is due
	e.Exit(nil)
	if got := c.Resource("d").Name(); got != "d" {
		t.Errorf("d is counted for %s", got)
	}
	c.Block(t.Context(), "d", "", collector.Origin("x"))
	if got := fmt.Sprint(origins(c.Resource("d"))); got != "[x]" {
		t.Errorf("origins of d: %s", got)
	}
}

// While idle resources are retired, each concurrent call is counted exactly once.
func TestRetirementUnderWriters(t *testing.T) {
	c, f := clocked(
		t,
		collector.Options{RetireAfter: 62 * time.Second, MaxResources: 50, Windows: node.Options{History: time.Minute}},
	)
	length := 2 * time.Second
	if testing.Short() {
		length = 500 * ms
	}
	begin := time.Now()
	var stop atomic.Bool
	var calls, nested, blocks atomic.Int64
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			handle := c.Resource("shared")
			for i := 0; !stop.Load(); i++ {
				switch i % 5 {
				case 0, 1:
					e := handle.Enter()
					e.Exit(nil)
					calls.Add(1)
				case 2:
					_, e, _ := c.Enter(
						context.Background(),
						fmt.Sprint("r", i%20),
						collector.Origin(fmt.Sprint("o", g)),
					)
					e.Exit(nil)
					calls.Add(1)
				case 3:
					ctx, e, _ := c.Enter(
						context.Background(),
						"up",
						collector.Entrance(fmt.Sprint("e", i%3)),
						collector.Batch(2),
					)
					_, e2, _ := c.Enter(ctx, fmt.Sprint("below", i%20), collector.Inbound())
					e.Exit(nil)
					e2.Exit(nil)
					calls.Add(2)
					nested.Add(1)
				case 4:
					handle.Block("x")
					blocks.Add(1)
				}
			}
		})
	}
	wg.Go(func() {
		defer stop.Store(true)
		for took := time.Duration(0); took < length || took < time.Minute &&
			c.Health().Retired < 20; took = time.Since(begin) {
			f.add(70 * time.Second) // 70 s is more than RetireAfter, so Seal can retire idle resources
			c.Seal()
			for _, r := range c.Seal().Resources {
				if n := r.InFlight(); n < 0 {
					t.Errorf("%s: %d in flight", r.Name(), n)
				}
			}
		}
	})
	wg.Wait()
	root := c.Tree().View().Snapshot(nil)
	in := c.Inbound().Snapshot(nil)
	if h := c.Health(); h.Retired < 20 {
		t.Errorf("only %d resources were retired", h.Retired)
	}
	if root.Total.Pass != calls.Load() || root.Total.Complete != calls.Load() || root.Total.Block != blocks.Load() ||
		root.InFlight != 0 {
		t.Errorf("root %+v of %d calls, %d blocks", root, calls.Load(), blocks.Load())
	}
	if in.Total.Pass != nested.Load() || in.Total.Complete != nested.Load() || in.InFlight != 0 {
		t.Errorf("inbound %+v of %d nested calls", in, nested.Load())
	}
}
