package collector_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// dry turns the limits into dry runs, and returns them.
func dry(limits ...collector.Limit) []collector.Limit {
	for i := range limits {
		limits[i].DryRun = true
	}
	return limits
}

// wouldRefuse returns the number of calls that each dry run of a resource would have refused. The keys of the map are
// the names of the dry runs.
func wouldRefuse(r *collector.Resource) map[string]int64 {
	all := map[string]int64{}
	for reason, v := range r.DryRuns() {
		all[reason] = v.Snapshot(nil).Total.Block
	}
	return all
}

// twins returns random limits, each of them twice: as a limit on names that begin with "real", and as a dry run on
// names that begin with "dry".
func twins(random *rand.Rand) []collector.Limit {
	count := func(n int64) int64 { return random.Int64N(n) }
	real := []collector.Limit{
		{Resource: "real/1", Count: 2 + count(6)},
		{Resource: "real/1", Origin: "web", Count: 2 + count(3)},
		{Resource: "real/*", Count: 3 + count(6), Strict: true},
		{Resource: "real/*", Origin: "bot", Count: count(4)},
		{Resource: "real/*", Grade: collector.Concurrency, Count: 1 + count(5)},
		{Resource: "*l/2", Origin: "bot", Grade: collector.Concurrency, Count: count(3)},
		{Resource: "real, others", Count: 5 + count(9)},
	}
	all := real
	for _, l := range real {
		l.Resource = strings.NewReplacer("real", "dry", "*l", "*y").Replace(l.Resource)
		all = append(all, dry(l)...)
	}
	return all
}

// compare compares two resources: "real"+name has limits, and "dry"+name has equal dry runs. The dry runs must count as
// many calls as the limits have refused, for each reason and in each second. No dry run may have refused a call.
func compare(t *testing.T, c *collector.Collector, name string) {
	t.Helper()
	r, d := c.Resource("real"+name), c.Resource("dry"+name)
	want, got := map[string]int64{}, wouldRefuse(d)
	for reason, n := range r.Blocks() {
		if reason != collector.Unspecified {
			want[strings.NewReplacer("real", "dry", "*l", "*y").Replace(reason)] = n
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("%s: dry runs would have refused %v; limits refused %v", name, got, want)
	}
	seconds := map[time.Time]int64{}
	for _, v := range d.DryRuns() {
		for _, m := range v.Last(600) {
			seconds[m.Start] += m.Block
		}
	}
	for _, m := range r.View().Last(600) {
		if seconds[m.Start] != m.Block {
			t.Fatalf(
				"%s: in %v dry runs would have refused %d, limits refused %d",
				name,
				m.Start,
				seconds[m.Start],
				m.Block,
			)
		}
	}
	own, other := d.Snapshot(nil).Total, r.Snapshot(nil).Total
	if own.Block != 0 || own.Pass != other.Pass+other.Block {
		t.Fatalf("%s: %+v under dry runs, %+v under limits", name, own, other)
	}
}

// Under the same load without retries, a dry run counts exactly the calls that an equal limit refuses. The test covers
// limits on QPS and concurrency, strict limits, patterns, and limits on origins. The calls include batches and
// overflowing names. The limits change during the test.
func TestADryRunCountsWhatALimitRefuses(t *testing.T) {
	var refused int64
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 36))
		c, f := clocked(t, collector.Options{Windows: node.Options{SampleCount: []int{1, 2, 10}[seed%3]}})
		limit(t, c, twins(random)...)
		var flying [][2]*collector.Entry
		for range 400 {
			name := fmt.Sprint("/", 1+random.IntN(4))
			opts := []collector.CallOption{
				collector.Origin([]string{"", "web", "bot"}[random.IntN(3)]),
				collector.Batch(1 + random.Int64N(2)),
			}
			switch random.IntN(12) {
			case 0:
				opts = append(opts, collector.Admitted())
			case 1:
				opts = append(opts, collector.Passed())
			}
			both := func(f func(kind, name string, opts []collector.CallOption) *collector.Entry) {
				var pair [2]*collector.Entry
				for i, kind := range []string{"real", "dry"} {
					own := opts[:len(opts):len(opts)]
					if name == "/4" { // this name gets no resource, because its calls have the option FallbackResource
						own = append(own, collector.FallbackResource(kind+", others"))
					}
					pair[i] = f(kind, kind+name, own)
				}
				flying = append(flying, pair)
			}
			switch k := random.IntN(20); {
			case k < 10:
				both(func(kind, name string, opts []collector.CallOption) *collector.Entry {
					_, e, err := c.Enter(context.Background(), name, opts...)
					if kind == "dry" && err != nil {
						t.Fatal(err)
					}
					return &e
				})
			case k < 11 && name != "/4":
				both(func(_, name string, _ []collector.CallOption) *collector.Entry {
					e, _ := c.Resource(name).TryEnter()
					return &e
				})
			case k < 12:
				both(func(_, name string, opts []collector.CallOption) *collector.Entry {
					c.Record(name, collector.Completed{}, opts...)
					return new(collector.Entry)
				})
			case k < 14:
				f.add(time.Duration(random.Int64N(int64(400 * ms))))
			case k < 15 && random.IntN(5) == 0:
				limit(t, c, twins(random)...)
			case len(flying) > 0:
				i := random.IntN(len(flying))
				for _, e := range flying[i] {
					e.Exit(nil)
					e.Exit(nil)
				}
				flying = append(flying[:i], flying[i+1:]...)
			}
		}
		f.add(time.Second)
		c.Seal()
		for _, name := range []string{"/1", "/2", "/3", ", others"} {
			compare(t, c, name)
			refused += c.Resource("real" + name).Snapshot(nil).Total.Block
		}
	}
	if refused < 10000 {
		t.Errorf("only %d calls were refused", refused)
	}
}

// If a limit would let a prioritized call wait for a later bucket, an equal dry run does not count the call as refused.
// The quota of the dry run counts the pass in the later bucket.
func TestDryRunCountsPrioritizedCalls(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 36))
			c := newCollector(t, collector.Options{Windows: node.Options{SampleCount: []int{2, 10}[seed%2]}})
			limit(
				t,
				c,
				append(dry(qps("dry", 5), collector.Limit{Resource: "dry", Origin: "web", Count: 3, Strict: true}),
					qps("real", 5), collector.Limit{Resource: "real", Origin: "web", Count: 3, Strict: true})...)
			for range 300 {
				opts := []collector.CallOption{collector.Origin([]string{"", "web"}[random.IntN(2)])}
				if random.IntN(2) == 0 {
					opts = append(opts, collector.Prioritized())
				}
				go func() {
					_, e, _ := c.Enter(context.Background(), "real", opts...)
					e.Exit(nil)
				}()
				synctest.Wait()
				if _, e, err := c.Enter(context.Background(), "dry", opts...); err != nil {
					t.Fatal(err)
				} else {
					e.Exit(nil)
				}
				time.Sleep(time.Duration(random.Int64N(int64(200 * ms))))
			}
			time.Sleep(2 * time.Second)
			c.Seal()
			compare(t, c, "")
			if s := c.Resource("real").Snapshot(nil); s.Total.OccupiedPass == 0 || s.Total.Block == 0 {
				t.Errorf("%+v", s.Total)
			}
		})
	}
}

// If a name has a limit and a dry run, the dry run checks only the calls that the limit admits. If such a call waits
// for a bucket, the dry run checks the call after the wait. The dry run does not affect the limit.
func TestDryRunNextToALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		limit(t, c, append(dry(qps("a", 3), flying("a", 1)), qps("a", 4))...)
		passed := 0
		for range 10 {
			list := pass(c, "a", 1)
			passed += len(list)
			exit(list)
		}
		r := c.Resource("a")
		if got := wouldRefuse(r); passed != 4 || got["qps a"] != 1 || got["concurrency a"] != 0 {
			t.Errorf("%d of 10 calls passed; dry runs would have refused %v", passed, got)
		}
		if n, ok := r.Limit(collector.QPS); n != 4 || !ok {
			t.Errorf("the limit is %d, %t", n, ok)
		}
		if _, ok := r.Limit(collector.Concurrency); ok {
			t.Error("Resource.Limit returns a dry run")
		}
		// Two prioritized calls wait for the next bucket, and then pass. The dry run on concurrency allows one call in
		// flight, so it counts the second of these calls as refused.
		time.Sleep(600 * ms)
		limit(t, c, append(dry(qps("a", 9), flying("a", 1)), qps("a", 4))...)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				_, e, err := c.Enter(t.Context(), "a", collector.Prioritized())
				if err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				e.Exit(nil)
			})
		}
		wg.Wait()
		if got := wouldRefuse(r); got["qps a"] != 1 || got["concurrency a"] != 1 {
			t.Errorf("after two calls have waited, dry runs would have refused %v", got)
		}
		if s := r.Snapshot(nil); s.Total.OccupiedPass != 2 || s.Total.Pass != 6 || s.Total.Block != 6 ||
			s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Under concurrent calls, a dry run counts exactly the calls over its quota, and each of them once.
func TestDryRunIsExactUnderConcurrency(t *testing.T) {
	const goroutines, calls = 16, 2000
	// Run the calls on 16 threads. If the machine has fewer processors, the operating system interrupts the threads in
	// turn, possibly in the middle of a call.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(goroutines))
	each := func(f func(g int)) {
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() { f(g) })
		}
		wg.Wait()
	}
	for _, name := range []string{"a", "no resource"} {
		c, _ := clocked(t, collector.Options{})
		limit(t, c, append(dry(qps("*", 1000), flying("*", 5)), qps("*", 12000))...)
		var opts []collector.CallOption
		if name != "a" {
			opts = append(opts, collector.FallbackResource("others"))
		}
		stay := pass(c, name, 5, opts...) // five calls stay in flight, as many as the dry run on concurrency allows
		each(func(int) {
			for range calls {
				exit(pass(c, name, 1, opts...))
			}
		})
		r := c.Resource(map[bool]string{true: "a", false: "others"}[name == "a"])
		// The limit admits 12000 calls. The dry run on concurrency allows five calls in flight. Five calls stay in
		// flight, so the dry run would refuse all other calls that the limit admits: 12000 - 5.
		if got := wouldRefuse(r)["concurrency *"]; got != 12000-5 {
			t.Errorf("%s: five calls stay in flight, and the dry run would refuse %d calls, want 11995", name, got)
		}
		limit(t, c, dry(qps("*", 1000), flying("*", goroutines+5))...)
		each(func(int) {
			for range calls {
				exit(pass(c, name, 1, opts...))
			}
		})
		// The five calls in flight use 5 of the quota of 1000. The 12000 - 5 calls that the first dry run on
		// concurrency would have refused use no quota of dry runs. The dry run on QPS would therefore admit 1000 - 5 of
		// the new calls. The new dry run on concurrency would admit all new calls, so its count stays at 12000 - 5.
		got := wouldRefuse(r)
		if over := int64(goroutines*calls - (1000 - 5)); got["qps *"] != over || got["concurrency *"] != 12000-5 {
			t.Errorf("%s: %v would be refused, want %d over the quota", name, got, over)
		}
		exit(stay)
		limit(t, c, dry(flying("*", 1))...)
		last := pass(c, name, 3, opts...)
		if got := wouldRefuse(r)["concurrency *"]; got != 12000-5+2 {
			t.Errorf("%s: without other calls in flight, %d of 3 calls would be refused, want 2", name, got-11995)
		}
		exit(last)
		if s := r.Snapshot(nil); s.InFlight != 0 || s.Total.Pass+s.Total.Block != 2*goroutines*calls+8 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Like new limits, new dry runs count the passes of the last second and the calls in flight. The counts of removed dry
// runs stay. When a dry run on concurrency counts the calls in flight, it omits each call that any dry run would have
// refused.
func TestDryRunsAreReplaced(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	r := c.Resource("a")
	before := pass(c, "a", 3)
	for i, tc := range []struct {
		limits []collector.Limit
		// want is the result of wouldRefuse after three more calls. The calls that pass stay in flight.
		want map[string]int64
	}{
		{dry(qps("a", 4)), map[string]int64{"qps a": 2}},
		{dry(qps("a", 5), flying("?", 1)), map[string]int64{"qps a": 4}},
		{append(dry(qps("*", 0)), flying("a", 9)), map[string]int64{"qps a": 4, "qps *": 0}},
		{nil, map[string]int64{"qps a": 4}},
		// 12 calls are in flight. Dry runs would have refused 4 of them, so only the other 8 count for dry runs. The
		// new dry run allows 10 calls in flight: of the three new calls, 10 - 8 = 2 fit, and it counts 1 as refused.
		{dry(flying("a", 10)), map[string]int64{"qps a": 4, "concurrency a": 1}},
		// 15 calls are in flight. Dry runs would have refused 5 of them, so only the other 10 count for dry runs. The
		// new dry run allows 11 calls in flight: of the three new calls, 11 - 10 = 1 fits, and it counts 2 as refused.
		// The previous dry run with the same name has counted 1 call, so the count is 3.
		{dry(flying("a", 11)), map[string]int64{"qps a": 4, "concurrency a": 3}},
		{[]collector.Limit{flying("a", 19)}, map[string]int64{"qps a": 4, "concurrency a": 3}},
	} {
		limit(t, c, tc.limits...)
		before = append(before, pass(c, "a", 3)...)
		if got := wouldRefuse(r); !maps.Equal(got, tc.want) {
			t.Errorf("%d: %v, want %v", i, got, tc.want)
		}
	}
	if n := r.InFlight(); n != 19 { // 18 calls were in flight, so the limit of 19 admitted one of three calls
		t.Errorf("%d in flight", n)
	}
	exit(before)
	limit(t, c, dry(flying("a", 2))...)
	list := pass(c, "a", 3)
	if got := wouldRefuse(r)["concurrency a"]; got != 4 {
		t.Errorf("dry runs would have refused %d calls, want 3 + 1", got)
	}
	exit(list)
	var reasons []string
	for i := range 30 {
		reasons = append(reasons, fmt.Sprint("a", strings.Repeat("*", i)))
		limit(t, c, dry(qps(reasons[i], 0))...)
		pass(c, "a", 1)
	}
	if got := wouldRefuse(r); len(got) != 16 || got[collector.Other] < 10 {
		t.Errorf("%v", got)
	}
}

// A name first shares the quota of a dry run with other names, and then gets its own quota. The new quota starts with
// the passes that the shared quota has counted. These passes do not include the calls that the dry run would have
// refused.
func TestOwnLimiterKeepsSharedPassesOfADryRun(t *testing.T) {
	c, f := crowded(t, 1)
	limit(t, c, dry(qps("*", 5))...)
	exit(pass(c, "a", 1))
	f.add(4900 * ms)
	exit(pass(c, "x", 7)) // "a" has its own quota; "x" uses the quota that all other names share
	f.add(200 * ms)       // the last pass of "a" was 5.1 s ago, so "a" is idle, and "x" can get its own quota
	c.Seal()
	limit(t, c, dry(qps("*", 7))...)
	exit(pass(c, "x", 9))
	if got := wouldRefuse(c.Resource(collector.Other))["qps *"]; got != 2+7 {
		t.Errorf("%d would be refused, want 2 of 7 and 7 of 9", got)
	}
}

// A View of a dry run exists even before the dry run has counted a call. After the resource is retired, the View reads
// 0. When the name is used again, the View reads the count of the new resource.
func TestViewsOfDryRunsFollowTheirNames(t *testing.T) {
	c, f := clocked(t, collector.Options{RetireAfter: 3 * time.Minute, Windows: node.Options{History: time.Minute}})
	limit(t, c, dry(qps("a*", 1))...)
	view := func() (v collector.View) {
		for _, v = range c.Resource("ab").DryRuns() {
		}
		return v
	}
	early := view()
	if early.Node() != nil {
		t.Error("there are records of refused calls before the first refusal")
	}
	check := func(when string, n int64) {
		t.Helper()
		if got := early.Snapshot(nil).Total.Block; got != n {
			t.Errorf("%s: %d, want %d", when, got, n)
		}
	}
	exit(pass(c, "ab", 3))
	check("in use", 2)
	kept := c.Resource("ab")
	for range 20 {
		f.add(30 * time.Second)
		c.Seal()
	}
	if c.Health().Retired != 1 {
		t.Fatal("the resource was not retired")
	}
	check("retired", 0)
	exit(pass(c, "ab", 2))
	check("used again", 1)
	if got := wouldRefuse(kept)["qps a*"]; got != 1 {
		t.Errorf("the kept handle has %d", got)
	}
}

// CheckLimits checks dry runs like other limits. A dry run and a limit may have the same Resource, Origin and Grade.
func TestDryRunsAreChecked(t *testing.T) {
	if err := collector.CheckLimits(append(dry(qps("a", 1)), qps("a", 1))); err != nil {
		t.Error(err)
	}
	err := collector.CheckLimits(dry(qps("a", 1), qps("a", 2), qps("", 1), collector.Limit{Resource: "b", Count: -1}))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Error(err)
	}
	for range (*collector.Resource)(nil).DryRuns() {
		t.Error("a nil Resource has dry runs")
	}
	for range newCollector(t, collector.Options{}).Resource("a").DryRuns() {
		t.Error("a resource without dry runs lists one")
	}
}

// A call allocates nothing if the limit and the dry runs admit it.
func TestDryRunsAllocateNothing(t *testing.T) {
	c := newCollector(t, collector.Options{})
	limit(t, c, append(dry(qps("a", 1<<40), flying("a", 10)), qps("a", 1<<40))...)
	r := c.Resource("a")
	if n := testing.AllocsPerRun(1000, func() {
		e, _ := r.TryEnter()
		e.Exit(nil)
	}); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}
