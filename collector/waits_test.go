package collector_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Regression: while SetLimits matched all names with all patterns, the registration of a new name waited for more than
// a second. Now the registration waits at most until SetLimits has changed one resource. A name can therefore be
// registered while the first resource already has the new limits, and the last resource still has the old limits.
func TestNewNamesDoNotWaitForAllLimits(t *testing.T) {
	const resources, patterns = 2000, 200
	c := newCollector(t, collector.Options{MaxResources: 10 * resources})
	var all []*collector.Resource
	for i := range resources {
		all = append(all, c.Resource(fmt.Sprintf("GET /%d/x", i)))
	}
	for round := range 20 {
		var limits []collector.Limit
		for i := range patterns {
			limits = append(limits, collector.Limit{Resource: fmt.Sprintf("GET /*%d/x", i), Count: int64(round)})
		}
		limits = append(limits, collector.Limit{Resource: "*", Grade: collector.Concurrency, Count: int64(round + 1)})
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.SetLimits(limits); err != nil {
				t.Error(err)
			}
		})
		has := func(r *collector.Resource) bool {
			count, ok := r.Limit(collector.Concurrency)
			return ok && count == int64(round+1)
		}
		for !has(all[0]) {
			time.Sleep(time.Microsecond)
		}
		fresh := c.Resource(fmt.Sprint("new ", round))
		between := !has(all[resources-1])
		if !has(fresh) {
			t.Errorf("a name that was registered while limits were set has %v", collector.RulesOf(fresh))
		}
		wg.Wait()
		if between {
			return
		}
	}
	t.Error("no name was registered before all resources had their limits")
}

// Regression: one Seal visited all leaves. With 50,000 leaves, this took 175 ms, and the registration of a new name
// waited for most of this time. A Seal now visits a part of the leaves, and the next Seal continues with other leaves.
// Seal must not return resources that an earlier Seal has retired. If a name is used again during the sweep,
// Seal must return the resource of the name exactly once.
func TestASealSweepsItsShare(t *testing.T) {
	const resources, origins = 3000, 3
	c, f := clocked(t, collector.Options{MaxMemory: 1 << 30})
	for i := range resources {
		for o := range origins {
			_, e, _ := c.Enter(context.Background(), fmt.Sprint("r", i), collector.Origin(fmt.Sprint("o", o)))
			e.Exit(nil)
		}
	}
	f.add(2 * time.Hour)
	c.Seal()
	if n := c.Health().Retired; n < 200 || n > 251 {
		t.Errorf("the first Seal retired %d", n)
	}
	_, e, _ := c.Enter(context.Background(), "r0")
	e.Exit(nil)
	n := 0
	for _, r := range c.Seal().Resources {
		if r.Name() == "r0" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("Seal returned the resource r0 %d times, want once", n)
	}
	for n := 0; c.Health().Retired < resources && n < 20; n++ {
		c.Seal()
	}
	if h := c.Health(); h.Retired != resources || h.Resources != 1 || h.Leaves != 1 || len(c.Seal().Resources) != 1 {
		t.Errorf("%+v", h)
	}
}

// Regression: if the table was full, the registration of a new name waited until a sweep had visited all resources. The
// registration now does a part of the sweep, and later registrations of new names continue the sweep.
func TestANewNameSweepsSomeOfMany(t *testing.T) {
	const resources = 1000
	c, f := clocked(t, collector.Options{MaxResources: resources})
	for i := range resources {
		c.Resource(fmt.Sprint("r", i))
	}
	f.add(2 * time.Hour)
	c.Timeline().At(c.Timeline().Now()) // open the current second, as a call would
	c.Resource("new 0")
	first := c.Health().Retired
	if first == 0 || first > resources/10 {
		t.Errorf("%d resources are retired for one new name", first)
	}
	for i := range first - 1 { // the resource "new 0" has taken one of the free slots
		c.Resource(fmt.Sprint("new ", i+1))
	}
	if h := c.Health(); h.Retired != first {
		t.Errorf("%d resources are retired, want %d, because the new names fit into their slots", h.Retired, first)
	}
	for i := range resources {
		c.Resource(fmt.Sprint("more ", i))
	}
	// All old resources are retired. Resources of new names fill the table, and _other has an additional slot.
	if h := c.Health(); h.Retired != resources || h.Resources != resources+1 {
		t.Errorf("%+v", h)
	}
}

// Retired leaves and resources are removed from all lists and all views.
func TestRetiredResourcesAreRemoved(t *testing.T) {
	c, f := clocked(
		t,
		collector.Options{MaxOrigins: 1000, Windows: node.Options{History: time.Minute}, RetireAfter: 5 * time.Minute},
	)
	var calls int64
	call := func(from, to int) {
		for i := from; i < to; i++ {
			calls++
			_, e, _ := c.Enter(context.Background(), "one", collector.Origin(fmt.Sprint("o", i)), collector.Inbound())
			e.Exit(nil)
		}
	}
	call(0, 700)
	f.add(4 * time.Minute)
	call(650, 800)
	f.add(2 * time.Minute)
	c.Seal()
	if h := c.Health(); h.Leaves != 150 || h.Resources != 1 {
		t.Errorf("%+v, want 150 leaves", h)
	}
	var origins int
	for range c.Resource("one").Origins() {
		origins++
	}
	if origins != 150 {
		t.Errorf("%d origins, want 150", origins)
	}
	for name, v := range map[string]collector.View{
		"root": c.Tree().View(), "inbound": c.Inbound(),
		"resource": c.Resource("one").View(), "entrance": c.Tree().Children()[0].View(),
	} {
		if got := v.Snapshot(nil).Total.Pass; got != calls {
			t.Errorf("%s has %d passes, want %d", name, got, calls)
		}
	}
	f.add(10 * time.Minute)
	if m := c.Seal(); len(m.Resources) != 1 {
		t.Errorf("%d resources, want 1, for its last seconds", len(m.Resources))
	}
	if m, h := c.Seal(), c.Health(); len(m.Resources) != 0 || h.Resources != 0 || h.Leaves != 0 || h.Entrances != 0 ||
		len(c.Tree().Children()) != 0 {
		t.Errorf("%d resources, %+v", len(m.Resources), h)
	}
	for name, v := range map[string]collector.View{"root": c.Tree().View(), "inbound": c.Inbound()} {
		if got := v.Snapshot(nil).Total.Pass; got != calls || !v.Node().Empty() {
			t.Errorf("%s has %d passes, want %d, or has leaves", name, got, calls)
		}
	}
}

// Random steps set limits, register names, retire names and make calls, first in sequence and then concurrently. Each
// name must then have the limits that match it: first its limits on QPS, then its limits on concurrency. Within each
// grade, the limits keep the order of SetLimits.
func TestLimitsOfNamesAgainstOracle(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		c, f := clocked(
			t,
			collector.Options{
				MaxResources: 8,
				Windows:      node.Options{History: time.Minute},
				RetireAfter:  2 * time.Minute,
			},
		)
		names := []string{
			"a",
			"ab",
			"abc",
			"b",
			"ba",
			"bab",
			"GET /a",
			"GET /a/b",
			"GET /b",
			"c/*",
			collector.Other,
			"x y",
			"abcabc",
			"z",
		}
		patterns := append([]string{"*", "a*", "*b", "a*c", "*a*b*", "GET /*", "GET /*/b", "**"}, names...)
		pick := func(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }
		var limits []collector.Limit
		set := func(r *rand.Rand) {
			limits = nil
			for range r.IntN(6) {
				l := collector.Limit{
					Resource: pick(r, patterns),
					Grade:    collector.Grade(r.IntN(2)),
					Count:    int64(r.IntN(3)),
					Origin:   pick(r, []string{"", "o"}),
				}
				if !slices.ContainsFunc(limits, func(x collector.Limit) bool { return x.String() == l.String() }) {
					limits = append(limits, l)
				}
			}
			if err := c.SetLimits(limits); err != nil {
				t.Error(err)
			}
		}
		call := func(r *rand.Rand) {
			_, e, _ := c.Enter(context.Background(), pick(r, names), collector.Origin(pick(r, []string{"", "o", "p"})))
			e.Exit(nil)
		}
		check := func() {
			t.Helper()
			passed := map[string]bool{}
			for _, name := range names {
				_, e, err := c.Enter(context.Background(), name)
				e.Exit(nil)
				passed[name] = err == nil
			}
			all := c.Seal().Resources
			var own []string
			for _, r := range all {
				own = append(own, r.Name())
				want := naiveLimits(limits, r.Name(), r.Name() == collector.Other)
				if got := collector.RulesOf(r); !slices.Equal(got, want) {
					t.Fatalf("seed %d: %q has %v, want %v of %v", seed, r.Name(), got, want, limits)
				}
			}
			for _, name := range names {
				if slices.Contains(own, name) || !passed[name] || !slices.ContainsFunc(limits, hasStar) {
					continue // the name has a resource, or overflowLimiters may have no limiter for it
				}
				got := collector.RulesOfName(c, name)
				if want := naiveLimits(limits, name, false); !slices.Equal(got, want) {
					t.Fatalf(
						"seed %d: the overflowing name %q has %v, want %v of %v",
						seed,
						name,
						got,
						want,
						limits,
					)
				}
			}
		}
		for range 60 {
			switch random.IntN(4) {
			case 0:
				set(random)
			case 1:
				c.Resource(pick(random, names))
			case 2:
				call(random)
			case 3:
				f.add(time.Duration(random.IntN(60)) * time.Second)
				c.Seal()
			}
			check()
		}
		for range 5 {
			var wg sync.WaitGroup
			for w := range uint64(3) {
				r := rand.New(rand.NewPCG(random.Uint64(), w))
				wg.Go(func() {
					for range 20 {
						c.Resource(pick(r, names))
						call(r)
					}
				})
			}
			wg.Go(func() {
				for range 5 {
					f.add(40 * time.Second)
					c.Seal()
				}
			})
			for range 5 {
				set(random)
			}
			wg.Wait()
			check()
		}
	}
}

// naiveLimits returns the limits that match a name. The parameter shared is true for the resource Other, which records
// calls of many names. Limits with a * do not apply to this resource.
func naiveLimits(limits []collector.Limit, name string, shared bool) (list []collector.Limit) {
	for _, l := range limits {
		if l.Matches(name) && (!shared || !hasStar(l)) {
			list = append(list, l)
		}
	}
	// A limiter lists its limits on QPS first.
	slices.SortStableFunc(list, func(a, b collector.Limit) int { return cmp.Compare(a.Grade, b.Grade) })
	return list
}

func hasStar(l collector.Limit) bool { return strings.Contains(l.Resource, "*") }
