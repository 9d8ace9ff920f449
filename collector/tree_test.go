package collector_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// event is the start, the end or the refusal of a call. The oracle computes all counts from events.
type event struct {
	at                         time.Duration
	resource, origin, entrance string
	parent                     string // resource of the caller; empty for an outermost call
	inbound                    bool   // the call counts in the total of inbound calls
	within                     bool   // the call is part of an inbound request, so inbound calls below it do not count
	pass, block, done, failed  int64
	rt                         time.Duration
	balance                    int64 // change of the calls in flight: 1, -1 or 0
}

// forest is an oracle for random call trees. It keeps a list of the events of all calls.
type forest struct {
	mu     sync.Mutex
	begin  time.Time
	events []event
	edges  map[string]bool // keys are "entrance > parent > child"
}

func (f *forest) note(h event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h.at = time.Since(f.begin)
	f.events = append(f.events, h)
	f.edges[h.entrance+" > "+h.parent+" > "+h.resource] = true
}

// grow makes a random call and its nested calls. Some nested calls run in other goroutines, and may outlive the call.
// The parameter caller describes the call that makes this call. It is the zero value if this call is an outermost call.
func (f *forest) grow(
	ctx context.Context,
	c *collector.Collector,
	wg *sync.WaitGroup,
	random *rand.Rand,
	caller event,
	depth int,
) {
	h := event{
		resource: string(rune('a' + random.IntN(6))), inbound: random.IntN(2) == 0,
		origin: caller.origin, entrance: caller.entrance, parent: caller.resource,
	}
	n := int64(1)
	var opts []collector.CallOption
	h.within = h.inbound || caller.within
	if h.inbound {
		opts = append(opts, collector.Inbound())
		h.inbound = !caller.within
	} else if random.IntN(3) == 0 {
		opts = append(opts, collector.Outbound())
		h.origin, h.within = "", false
	}
	if random.IntN(4) == 0 || depth == 0 {
		h.origin = []string{"", "web", "mobile"}[random.IntN(3)]
		opts = append(opts, collector.Origin(h.origin))
	}
	if random.IntN(4) == 0 {
		n = 1 + random.Int64N(5)
		opts = append(opts, collector.Batch(n))
	}
	entrance := []string{"", "http", "cron"}[random.IntN(3)]
	opts = append(opts, collector.Entrance(entrance)) // applies only to an outermost call
	if depth == 0 {
		h.entrance = entrance
		if entrance == "" {
			h.entrance = collector.DefaultEntrance
		}
	}
	if random.IntN(10) == 0 {
		c.Block(ctx, h.resource, "random", opts...)
		h.block = n
		f.note(h)
		return
	}
	begun := time.Now()
	if random.IntN(5) == 0 {
		begun = begun.Add(-time.Duration(random.Int64N(int64(time.Second))))
		opts = append(opts, collector.StartedAt(begun))
	}
	ctx, e, err := c.Enter(ctx, h.resource, opts...)
	if err != nil {
		panic(err)
	}
	h.pass, h.balance = n, 1
	f.note(h)
	h.pass, h.balance = 0, 0
	for depth < 5 && random.IntN(3) > 0 {
		time.Sleep(time.Duration(random.Int64N(int64(300 * ms))))
		below := rand.New(rand.NewPCG(random.Uint64(), 1))
		if random.IntN(2) == 0 {
			above := h
			wg.Go(func() { f.grow(ctx, c, wg, below, above, depth+1) })
		} else {
			f.grow(ctx, c, wg, below, h, depth+1)
		}
	}
	delay, fails := time.Duration(random.Int64N(int64(1500*ms))), random.IntN(3) == 0
	exit := func() {
		time.Sleep(delay)
		h.done, h.balance, h.rt = n, -1, time.Since(begun)
		err := error(nil)
		if fails {
			h.failed, err = n, errBad
		}
		e.Exit(err)
		f.note(h)
		e.Exit(nil) // has no effect, because the call has ended
	}
	if random.IntN(3) == 0 {
		wg.Go(exit)
	} else {
		exit()
	}
}

// counts uses the events for which match returns true. It returns the sum of the events in the interval [from, to). The
// result balance is the number of calls that have begun before the end of the interval, and are then still in flight.
func (f *forest) counts(from, to time.Duration, match func(event) bool) (c node.Counts, balance int64) {
	for _, h := range f.events {
		if h.at >= to || !match(h) {
			continue
		}
		balance += h.balance
		if h.at < from {
			continue
		}
		one := node.Counts{Pass: h.pass, Block: h.block, Complete: h.done, Exception: h.failed}
		if h.done > 0 {
			one.RTSum, one.RTMin, one.RTMax = h.rt*time.Duration(h.done), h.rt, h.rt
		}
		c = c.Add(one)
	}
	return c, balance
}

// The statistics of random call trees agree with an oracle. The calls are concurrent, and may outlive their callers.
// The test compares totals, windows, sealed seconds and histograms.
func TestCallTreesAgainstOracle(t *testing.T) {
	seeds := uint64(5)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			c := newCollector(t, collector.Options{})
			f := &forest{begin: time.Now(), edges: map[string]bool{}}
			random := rand.New(rand.NewPCG(seed, 5))
			var wg sync.WaitGroup
			for range 6 {
				own := rand.New(rand.NewPCG(random.Uint64(), 2))
				wg.Go(func() {
					for time.Since(f.begin) < 6*time.Second {
						f.grow(t.Context(), c, &wg, own, event{}, 0)
						time.Sleep(time.Duration(own.Int64N(int64(200 * ms))))
					}
				})
			}
			for range 8 { // compare with the oracle while calls are in flight
				time.Sleep(1100 * ms)
				synctest.Wait()
				f.checkAll(t, c)
			}
			wg.Wait()
			time.Sleep(time.Second)
			f.checkAll(t, c)
			f.checkTree(t, c)
		})
	}
}

// checkAll compares these Views with the oracle: the root, the inbound calls, each entrance, each resource, and each
// origin and entrance of a resource.
func (f *forest) checkAll(t *testing.T, c *collector.Collector) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	m := c.Seal()
	nodes := 0
	check := func(name string, v collector.View, match func(event) bool) {
		t.Helper()
		f.check(t, c, m, name, v, match)
		nodes++
	}
	check("root", c.Tree().View(), func(h event) bool { return h.parent == "" })
	check("inbound", c.Inbound(), func(h event) bool { return h.inbound })
	for _, e := range c.Tree().Children() {
		check("entrance "+e.Name(), e.View(), func(h event) bool { return h.parent == "" && h.entrance == e.Name() })
	}
	for _, r := range m.Resources {
		check("cluster "+r.Name(), r.View(), func(h event) bool { return h.resource == r.Name() })
		for origin, v := range r.Origins() {
			check(
				"origin "+origin+" of "+r.Name(),
				v,
				func(h event) bool { return h.resource == r.Name() && h.origin == origin },
			)
		}
		for entrance, v := range r.Entrances() {
			check(
				r.Name()+" in "+entrance,
				v,
				func(h event) bool { return h.resource == r.Name() && h.entrance == entrance },
			)
		}
	}
	if nodes < 10 {
		t.Errorf("only %d nodes", nodes)
	}
}

func (f *forest) check(
	t *testing.T,
	c *collector.Collector,
	m collector.Boundary,
	name string,
	v collector.View,
	match func(event) bool,
) {
	t.Helper()
	first := c.Tree().View().Node().Since()
	all, flying := f.counts(0, time.Hour, match)
	if s := v.Snapshot(nil); s.Total != all || s.InFlight != flying || v.InFlight() != flying {
		t.Fatalf("%s: %+v, %d in flight; want %+v, %d", name, s.Total, s.InFlight, all, flying)
	}
	now := time.Since(f.begin)
	window := now.Truncate(500 * ms)
	if want, _ := f.counts(window-500*ms, window+500*ms, match); v.Window().Counts != want ||
		v.PassQPS() != float64(want.Pass) {
		t.Fatalf("%s: window %+v, want %+v", name, v.Window().Counts, want)
	}
	for i := v.Node().Since(); i < m.Open; i++ {
		from := time.Duration(i-first) * time.Second
		want, flying := f.counts(from, from+time.Second, match)
		got, ok := v.Node().Second(i)
		if !ok || got.Counts != want || got.InFlight != flying || got.InFlightMax < flying {
			t.Fatalf("%s: second %d: %+v (%t), want %+v, %d in flight", name, i-first, got, ok, want, flying)
		}
		var peak int64
		for to := from + 500*ms; to <= from+time.Second; to += 500 * ms {
			w, _ := f.counts(to-time.Second, to, match)
			peak = max(peak, w.Pass)
		}
		if got.PassPeak != peak {
			t.Fatalf("%s: second %d: peak %d, want %d", name, i-first, got.PassPeak, peak)
		}
	}
	var h node.Histogram
	from := max(v.Node().Since(), m.Open-60)
	if !v.Node().Histogram(from, m.Open, &h) {
		t.Fatalf("%s: no histogram", name)
	}
	want, _ := f.counts(time.Duration(from-first)*time.Second, time.Duration(m.Open-first)*time.Second, match)
	if h.Count() != want.Complete || h.Sum() != want.RTSum {
		t.Fatalf("%s: histogram of %d with sum %v, want %+v", name, h.Count(), h.Sum(), want)
	}
}

// checkTree checks that the tree has exactly the edges of the calls that were made.
func (f *forest) checkTree(t *testing.T, c *collector.Collector) {
	t.Helper()
	got := map[string]bool{}
	for _, e := range c.Tree().Children() {
		seen := map[*collector.TreeNode]bool{}
		var walk func(parent string, n *collector.TreeNode)
		walk = func(parent string, n *collector.TreeNode) {
			for _, child := range n.Children() {
				got[e.Name()+" > "+parent+" > "+child.Name()] = true
				if !seen[child] {
					seen[child] = true
					walk(child.Name(), child)
				}
			}
		}
		walk("", e)
	}
	for edge := range f.edges {
		if !got[edge] {
			t.Errorf("%s is not in the tree", edge)
		}
	}
	if len(got) != len(f.edges) {
		t.Errorf("%d edges, want %d", len(got), len(f.edges))
	}
}

// tree returns the name of the node and the names of the nodes below it as text. It returns four levels at most.
func tree(n *collector.TreeNode, indent string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", indent, n.Name())
	if len(indent) < 6 {
		for _, child := range n.Children() {
			b.WriteString(tree(child, indent+"  "))
		}
	}
	return b.String()
}

// A resource appears below every caller, and below itself if it calls itself. Sentinel shows a resource only below its
// first caller.
func TestEveryParentIsShown(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	for _, path := range []string{"a b", "c b", "b b", "d a"} {
		names := strings.Fields(path)
		ctx, e, _ := c.Enter(t.Context(), names[0], collector.Entrance("http"))
		_, below, _ := c.Enter(ctx, names[1])
		e.Exit(nil) // the caller ends before its callee
		below.Exit(nil)
	}
	want := `machine-root
  http
    a
      b
    b
      b
    c
      b
    d
      a
`
	if got := tree(c.Tree(), ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Calls that are nested deeper than MaxDepth are counted. The tree shows the name Other instead of their resources.
func TestDepthIsBounded(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	ctx := t.Context()
	name := func(i int) string { return fmt.Sprint("n", i) }
	for i := range collector.MaxDepth + 2 {
		var e collector.Entry
		ctx, e, _ = c.Enter(ctx, name(i), collector.Entrance("x"))
		defer e.Exit(nil)
	}
	last := c.Tree().Children()[0]
	for i := range collector.MaxDepth {
		if last = last.Children()[0]; last.Name() != name(i) {
			t.Fatalf("at depth %d the tree has %s", i, last.Name())
		}
	}
	below := last.Children()
	if len(below) != 1 || below[0].Name() != collector.Other || below[0].View().Node() != nil {
		t.Errorf("below %s: %v", last.Name(), below)
	}
	if h := c.Health(); h.TreeOverflow != 2 || c.Resource(name(collector.MaxDepth+1)).Snapshot(nil).Total.Pass != 1 {
		t.Errorf("%+v", h)
	}
}

// Calls of two Collectors enter with the same context. Each Collector finds only its own calls in the context.
func TestCollectorsAreIndependent(t *testing.T) {
	c1, _ := clocked(t, collector.Options{})
	c2, _ := clocked(t, collector.Options{})
	ctx, _, _ := c1.Enter(t.Context(), "a", collector.Origin("x"), collector.Entrance("one"))
	ctx, _, _ = c2.Enter(ctx, "b")
	type key struct{}
	ctx = context.WithValue(ctx, key{}, "v")
	_, _, _ = c1.Enter(ctx, "c")
	if got, want := tree(c1.Tree(), ""), "machine-root\n  one\n    a\n      c\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	if got, want := tree(c2.Tree(), ""), "machine-root\n  _default\n    b\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	if ctx.Value(key{}) != "v" || !slices.Contains(origins(c1.Resource("c")), "x") {
		t.Error("the context has lost its value, or the call of c has lost its origin")
	}
}

func origins(r *collector.Resource) (names []string) {
	for name := range r.Origins() {
		names = append(names, name)
	}
	return names
}
