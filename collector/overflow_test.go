package collector_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

func qps(resource string, n int64) collector.Limit {
	return collector.Limit{Resource: resource, Count: n}
}

func flying(resource string, n int64) collector.Limit {
	return collector.Limit{Resource: resource, Grade: collector.Concurrency, Count: n}
}

// crowded returns a Collector with a full table of resources, so calls of further names overflow. The parameter size is
// the number of resources in the table. It is also the maximum number of overflowing names with their own limiters. If
// the variable unearned is set, the table stays empty: names that are not earned overflow even if the table has free
// slots.
func crowded(t testing.TB, size int) (*collector.Collector, *fakeClock) {
	t.Helper()
	c, f := clocked(
		t,
		collector.Options{
			MaxResources: size,
			RetireAfter:  3 * time.Minute,
			Windows:      node.Options{History: time.Minute},
		},
	)
	for i := range size {
		if len(unearned) == 0 {
			c.Resource(fmt.Sprint("old ", i))
		}
	}
	return c, f
}

// unearned holds options for calls. The function pass adds them to every call that it makes. The variable is nil,
// except while TestLimitsOfNamesThatAreNotEarned repeats tests of this file with names that are not earned.
var unearned []collector.CallOption

// pass tries to enter n calls of a name, and returns the entries of the calls that passed.
func pass(c *collector.Collector, name string, n int, opts ...collector.CallOption) (list []*collector.Entry) {
	opts = append(opts, unearned...)
	for range n {
		if _, e, err := c.Enter(context.Background(), name, opts...); err == nil {
			list = append(list, &e)
		}
	}
	return list
}

func exit(list []*collector.Entry) {
	for _, e := range list {
		e.Exit(nil)
	}
}

// Regression: a scanner sent requests with made-up paths, and the requests hung. The names of these paths and the name
// "checkout" found no free slot in the table of resources. All overflowing names shared one quota. The calls of the
// paths used up this quota, so the limit refused the few calls of "checkout".
func TestMadeUpNamesDoNotUseTheQuotaOfOthers(t *testing.T) {
	for _, l := range []collector.Limit{flying("*", 2), qps("*", 2)} {
		c, _ := crowded(t, 50)
		limit(t, c, l)
		for i := range 40 {
			if n := len(pass(c, fmt.Sprint("/wp-admin/", i), 1)); n != 1 {
				t.Fatalf("%v: the first call of a made-up name was refused", l)
			}
		}
		checkout := pass(c, "checkout", 3)
		if len(checkout) != 2 {
			t.Errorf("%v: %d calls of checkout passed, want 2", l, len(checkout))
		}
		exit(checkout)
		if n := len(pass(c, "checkout", 3)); l.Grade == collector.Concurrency && n != 2 ||
			l.Grade == collector.QPS && n != 0 {
			t.Errorf("%v: %d calls of checkout passed after the first calls had ended", l, n)
		}
	}
}

// Regression: an operator reloaded the limits file twice in a second. Overflowing names got a full quota with each
// reload.
func TestReloadKeepsUsedQuota(t *testing.T) {
	c, f := crowded(t, 5)
	web := collector.Limit{Resource: "/api/*", Origin: "web", Count: 8}
	limit(t, c, qps("/api/*", 10), web)
	if n := len(pass(c, "/api/x", 20)); n != 10 {
		t.Errorf("%d passed, want 10", n)
	}
	limit(t, c, qps("/api/*", 10), web)
	if n := len(pass(c, "/api/x", 20)); n != 0 {
		t.Errorf("%d more passed after a reload", n)
	}
	limit(t, c, web, flying("*", 100), qps("/api/*", 12))
	if n := len(pass(c, "/api/x", 20, collector.Origin("web"))); n != 2 {
		t.Errorf("%d more passed under a limit of 12 instead of 10, want 2", n)
	}
	limit(t, c, qps("/api/*", 30), collector.Limit{Resource: "/api/*", Origin: "web", Count: 3})
	if n := len(pass(c, "/api/x", 20, collector.Origin("web"))); n != 1 {
		t.Errorf("%d more of web passed under a limit of 3 instead of 8, want 1", n)
	}
	f.add(time.Second)
	if n := len(pass(c, "/api/x", 50)); n != 30 {
		t.Errorf("%d passed a second later, want 30", n)
	}
}

// Calls of an overflowing name are in flight. After SetLimits, the new limits on concurrency count these calls, too.
func TestReloadKeepsCallsInFlight(t *testing.T) {
	c, _ := crowded(t, 5)
	bot := collector.Limit{Resource: "*", Origin: "bot", Grade: collector.Concurrency, Count: 4}
	limit(t, c, qps("*", 100))
	list := pass(c, "x", 3, collector.Origin("bot"))
	limit(t, c, flying("*", 5), bot)
	list = append(list, pass(c, "x", 9, collector.Origin("bot"))...)
	if len(list) != 4 {
		t.Errorf("%d of the bot are in flight, want 4", len(list))
	}
	limit(t, c, bot, flying("*", 6), qps("*", 100))
	list = append(list, pass(c, "x", 9)...)
	if len(list) != 6 {
		t.Errorf("%d are in flight, want 6", len(list))
	}
	limit(t, c)
	exit(list[:1])
	limit(t, c, flying("*", 6))
	if n := len(pass(c, "x", 9)); n != 1 {
		t.Errorf("%d more calls entered after one had exited while no limits were set, want 1", n)
	}
}

// Regression: an overflowing name had used the quota of a pattern. SetLimits then set a limit on the exact name, so the
// name got its own resource. The resource started with a full quota.
func TestFirstLimitOnANameKeepsUsedQuota(t *testing.T) {
	c, f := crowded(t, 5)
	limit(t, c, qps("*", 10), flying("*", 50))
	list := pass(c, "login", 20)
	limit(t, c, qps("login", 10))
	if n := len(pass(c, "login", 20)); len(list) != 10 || n != 0 || c.Resource("login").Name() != "login" {
		t.Errorf("%d passed, and %d more after the limit on the name was set", len(list), n)
	}
	f.add(time.Second)
	limit(t, c, qps("login", 100), flying("login", 12))
	own := pass(c, "login", 9)
	if len(own) != 2 {
		t.Errorf("%d entered next to ten in flight, want 2", len(own))
	}
	for i, e := range list { // the calls in list entered before "login" had a resource
		e.Exit(nil)
		e.Exit(nil)
		if more := len(pass(c, "login", 3)); more != 1 {
			t.Fatalf("%d calls entered after call %d had exited, want 1", more, i)
		}
	}
	if n := c.Resource("login").InFlight(); n != 12 {
		t.Errorf("%d in flight", n)
	}
}

// When idle resources are retired, an overflowing name can get a free slot in the table of resources. The limits on the
// new resource of this name still count the name's earlier passes and its calls in flight.
func TestNewResourceKeepsUsedQuota(t *testing.T) {
	c, f := crowded(t, 2)
	limit(t, c, qps("*", 10), flying("*", 15))
	f.add(time.Hour)
	list := pass(c, "x", 20)
	c.Seal()
	more := pass(c, "x", 20)
	if c.Resource("x").Name() != "x" || len(list) != 10 || len(more) != 0 {
		t.Errorf("%d passed, and %d more", len(list), len(more))
	}
	f.add(time.Second)
	if more = pass(c, "x", 20); len(more) != 5 {
		t.Errorf("%d entered next to ten in flight, want 5", len(more))
	}
	exit(more)
	// No call enters for an hour. The ten calls in list are still in flight; they entered before "x" had a resource.
	f.add(time.Hour)
	c.Seal()
	c.Seal()
	if more = pass(c, "x", 20); len(more) != 5 {
		t.Errorf("%d entered next to ten in flight, after an hour, want 5", len(more))
	}
}

// The first limit on concurrency also counts the calls that are already in flight. When one of these calls ends, the
// limit stops counting this call, and no other call. This also holds if the call panics, if the call is ended twice, or
// if other limits are in force when the call ends.
func TestFirstLimitCountsCallsInFlight(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	r := c.Resource("a")
	first := r.Enter()
	list := pass(c, "a", 2, collector.Origin("web"), collector.Batch(7))
	panics, release := make(chan any), make(chan int)
	go func() {
		defer func() { panics <- recover() }()
		_ = r.Do(func() error { <-release; panic("boom") })
	}()
	for r.InFlight() < 4 {
		runtime.Gosched()
	}
	limits := []collector.Limit{flying("a", 5), {Resource: "*", Origin: "web", Grade: collector.Concurrency, Count: 3}}
	limit(t, c, limits...)
	if n := len(pass(c, "a", 5)); n != 1 {
		t.Errorf("%d entered next to four in flight, want 1", n)
	}
	release <- 1
	if <-panics == nil {
		t.Error("no panic")
	}
	limit(t, c, limits[1], flying("a", 5))
	web := pass(c, "a", 5, collector.Origin("web"))
	if len(web) != 1 {
		t.Errorf("%d calls of web entered after one call had panicked, want 1", len(web))
	}
	limit(t, c, qps("a", 1000))
	exit(append(list, web...))
	exit(list)
	first.Exit(errBad)
	limit(t, c, limits...)
	if n := len(pass(c, "a", 5)); n != 4 {
		t.Errorf("%d entered next to one in flight, want 4", n)
	}
}

// A prioritized call of an overflowing name waits for the next bucket. A limit on concurrency counts the call during
// this wait. If the context of the call is canceled, the limit no longer counts the call.
func TestWaitingCallsOfOverflowingNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{MaxResources: 4})
		for i := range 4 {
			c.Resource(fmt.Sprint(i))
		}
		limit(t, c, qps("*", 2), flying("*", 4))
		exit(pass(c, "x", 2))
		time.Sleep(600 * ms)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 3)
		for _, ctx := range []context.Context{ctx, t.Context(), ctx} {
			go func() {
				_, e, err := c.Enter(
					ctx,
					"x",
					append([]collector.CallOption{collector.Prioritized(), collector.Origin("o")}, unearned...)...)
				done <- err
				if err == nil {
					time.Sleep(time.Minute)
				}
				e.Exit(nil)
			}()
			synctest.Wait()
		}
		if err := <-done; !errors.Is(err, collector.ErrBlocked) || errors.Is(err, context.Canceled) {
			t.Errorf("a third call borrowed a pass under a limit of two: %v", err)
		}
		limit(t, c, flying("*", 2))
		if n := len(pass(c, "x", 1)); n != 0 {
			t.Error("the limit does not count waiting calls")
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		list := pass(c, "x", 3)
		if len(list) != 1 {
			t.Errorf("%d calls entered after one waiting call was canceled, want 1", len(list))
		}
		time.Sleep(500 * ms) // sleep until 1.1 s; the bucket with the borrowed pass opens at 1.0 s
		if err := <-done; err != nil {
			t.Error(err)
		}
		exit(list)
		limit(t, c, qps("*", 3))
		if n := len(pass(c, "x", 9)); n != 1 {
			t.Errorf("%d passed in the bucket with one borrowed pass and one other pass, want 1", n)
		}
		time.Sleep(2 * time.Minute)
		limit(t, c, flying("*", 2))
		if n := len(pass(c, "x", 9)); n != 1 {
			t.Errorf("%d entered next to one in flight, want 1", n)
		}
	})
}

// A call with the option Passed counts as in flight, even if the name of the call has no resource.
func TestPassedCallsAreInFlight(t *testing.T) {
	c, _ := crowded(t, 1)
	limit(t, c, flying("*", 2), qps("*", 2))
	for _, name := range []string{"old 0", "x"} {
		list := pass(c, name, 2, collector.Passed())
		if n := len(pass(c, name, 1)); n != 0 {
			t.Errorf("%s: a third call entered", name)
		}
		exit(list)
		if n := len(pass(c, name, 9)); n != 2 {
			t.Errorf("%s: %d entered, want 2", name, n)
		}
	}
}

// A limit on concurrency costs about the same with one origin and with a thousand origins.
func TestCostOfALimitWithAThousandOrigins(t *testing.T) {
	cost := func(origins int) time.Duration {
		c := newCollector(t, collector.Options{MaxOrigins: origins})
		limit(t, c, flying("*", 500))
		for i := range origins {
			exit(pass(c, "a", 1, collector.Origin(fmt.Sprint(i))))
		}
		r := c.Resource("a")
		best := time.Hour
		for range 20 {
			began := time.Now()
			for range 200 {
				if e, err := r.TryEnter(); err == nil {
					e.Exit(nil)
				}
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	if one, thousand := cost(1), cost(1000); thousand > 5*one {
		t.Errorf("200 calls take %v with one origin, and %v with a thousand", one, thousand)
	}
}

// At most MaxResources overflowing names have limiters. If the table of these limiters is full, a new name evicts an
// idle name, and never a name with calls in flight.
func TestOverflowLimitersAreBounded(t *testing.T) {
	many := 100_000
	if testing.Short() {
		many = 20_000
	}
	c, f := crowded(t, 100)
	limit(t, c, flying("*", 2), qps("*", 5))
	busy := pass(c, "checkout", 2)
	for i := range many {
		if i%50 == 0 {
			f.add(5 * time.Second)
		}
		list := pass(c, fmt.Sprint("/", i), 1)
		if len(list) != 1 {
			t.Fatalf("name %d is refused", i)
		}
		exit(list)
		if n := collector.LimitedNames(c); n > 100 {
			t.Fatalf("%d names", n)
		}
	}
	if n := len(pass(c, "checkout", 1)); n != 0 {
		t.Error("a name with calls in flight was evicted")
	}
	exit(busy)
	if n := len(pass(c, "checkout", 9)); n != 2 {
		t.Errorf("%d entered, want 2", n)
	}
}

// While the table of overflow limiters is full of busy names, further names share one quota for each pattern. When the
// table has capacity again, no name gets more passes than its limit allows.
func TestNamesShareLimitersWhenTheTableIsFull(t *testing.T) {
	c, f := crowded(t, 3)
	limit(t, c, qps("/a/*", 5), flying("/a/*", 6), qps("/b/*", 2), flying("*", 100))
	held := pass(c, "/b/0", 1)
	for _, name := range []string{"/b/1", "/b/2"} {
		exit(pass(c, name, 1))
	}
	f.add(ms)
	if a, b := pass(c, "/a/x", 3), pass(c, "/a/y", 9); len(a) != 3 || len(b) != 2 {
		t.Errorf("%d and %d passed, want 5 together", len(a), len(b))
	}
	if n := len(pass(c, "/b/x", 9)); n != 2 {
		t.Errorf("%d calls of the pattern /b/* passed, want 2", n)
	}
	if n := len(pass(c, "/b/0", 9)); n != 1 {
		t.Errorf("%d more passed of a name with its own quota, want 1", n)
	}
	f.add(5 * time.Second)
	c.Seal()
	// The table has three slots. /b/0 has a call in flight, so it keeps its slot. /a/z and /a/x get the other two
	// slots, and /a/y stays in the shared limiter. In this limiter, three calls of /a/x and two calls of /a/y are in
	// flight. The limit is six calls in flight, so 6 - 3 - 2 = 1 more call of /a/y passes.
	if z, x, y := pass(c, "/a/z", 9), pass(c, "/a/x", 9), pass(c, "/a/y", 9); len(z) != 5 || len(x) != 5 ||
		len(y) != 1 {
		t.Errorf("%d, %d and %d passed next to three of x and two of y in the shared limiter", len(z), len(x), len(y))
	}
	exit(held)
}

// A name that has used a shared quota can get its own quota later. The name's own quota then starts with the passes of
// the shared quota.
func TestOwnLimiterKeepsSharedPasses(t *testing.T) {
	c, f := crowded(t, 1)
	limit(t, c, qps("*", 5))
	exit(pass(c, "a", 1))
	f.add(4900 * ms)
	exit(pass(c, "x", 4)) // "a" has the only slot for a limiter, so "x" uses the shared quota
	f.add(200 * ms)       // at 5.1 s, "a" is idle, so "x" can get its own quota
	c.Seal()
	if n := len(pass(c, "x", 9)); n != 1 {
		t.Errorf("%d more passed, want 1", n)
	}
}

// One goroutine replaces the limits while other goroutines make calls of all kinds. The test has two runs. In the first
// run, a limit on concurrency is always in force, and no name ever has more calls in flight than this limit allows. In
// the second run, all limits are also removed periodically. After all calls of the other goroutines have exited, no
// limit counts one of these calls.
func TestLimitsAreReplacedUnderWriters(t *testing.T) {
	for _, removed := range []bool{false, true} {
		t.Run(fmt.Sprintf("removed %t", removed), func(t *testing.T) { limitsUnderWriters(t, removed) })
	}
}

func limitsUnderWriters(t *testing.T, removed bool) {
	const most = 7
	c := newCollector(
		t,
		collector.Options{MaxResources: 12, MaxOrigins: 4, Windows: node.Options{History: time.Minute}},
	)
	for i := range 9 {
		c.Resource(fmt.Sprint("busy ", i)).Enter()
	}
	length := time.Second
	if testing.Short() {
		length = 500 * ms
	}
	end := time.Now().Add(length)
	names := []string{"a", "b", "x", "y", "z", "w"}
	var inFlight [6]atomic.Int64
	var passed, refused atomic.Int64
	var wg sync.WaitGroup
	limited := func(count int64) []collector.Limit {
		return []collector.Limit{
			flying("*", count),
			{Resource: "*", Origin: "o", Grade: collector.Concurrency, Count: 3},
		}
	}
	limit(t, c, limited(most)...)
	for _, name := range names[:3] {
		c.Resource(name)
	}
	for g := range 12 {
		wg.Go(func() {
			origin := []string{"", "o", "p"}[g%3]
			r := c.Resource("a")
			for i := 0; time.Now().Before(end); i++ {
				k := (i + g) % len(names)
				switch {
				case k == 0 && i%4 == 0:
					_ = r.Do(func() error { return nil })
				case k == 1 && i%4 == 0:
					e := r.Enter()
					e.Exit(nil)
				default:
					ctx, cancel := context.WithCancel(context.Background())
					opts := []collector.CallOption{collector.Origin(origin)}
					if i%9 == 0 {
						cancel()
						opts = append(opts, collector.Prioritized(), collector.Batch(2))
					}
					_, e, err := c.Enter(ctx, names[k], opts...)
					if err != nil {
						refused.Add(1)
						cancel()
						continue
					}
					passed.Add(1)
					if n := inFlight[k].Add(1); n > most && !removed {
						t.Errorf("%d of %s in flight", n, names[k])
					}
					if i%3 == 0 {
						runtime.Gosched()
					}
					inFlight[k].Add(-1)
					e.Exit(nil)
					cancel()
				}
			}
		})
	}
	wg.Go(func() {
		for i := 0; time.Now().Before(end); i++ {
			list := limited(most - int64(i%3))
			switch i % 5 {
			case 1:
				list = append(list, qps("*", 1000), flying("b", 5), flying("y", 6))
			case 2:
				list = append(list, qps("x", 100), flying(collector.Other, 20))
			case 3:
				list = []collector.Limit{flying("?", 1), flying("*", most)}
			case 4:
				if removed {
					list = nil
				}
			}
			limit(t, c, list...)
		}
	})
	wg.Wait()
	limit(
		t,
		c,
		flying("*", 1),
		collector.Limit{Resource: "*", Origin: "o", Grade: collector.Concurrency, Count: 1},
		flying(collector.Other, 1),
	)
	for _, name := range names {
		list := pass(c, name, 3, collector.Origin("o"))
		if len(list) != 1 {
			t.Errorf("%s: %d entered after all calls had exited, want 1", name, len(list))
		}
		exit(list)
	}
	if passed.Load() < 100 || refused.Load() == 0 {
		t.Errorf("%d passed, %d were refused", passed.Load(), refused.Load())
	}
}

// An overflowing name keeps its limiter for five seconds after its last pass, even if other names need the slot. After
// five seconds, a new name may evict the overflowing name. Five seconds are enough, because each limit forgets a pass
// sooner: a strict limit with one bucket counts a pass for up to two seconds, and a borrowed pass belongs to a bucket
// that begins at most half a second after the call.
func TestNameKeepsItsLimiterWhileItsPassesCount(t *testing.T) {
	for since, own := range map[time.Duration]bool{
		0: true, time.Second: true, 3 * time.Second: true,
		4 * time.Second: true, 5 * time.Second: false,
	} {
		c, f := crowded(t, 2) // two overflowing names can have their own limiters
		strict := qps("/*", 3)
		strict.Strict = true
		limit(t, c, strict)
		f.set(10 * time.Second)
		for _, name := range []string{"/a", "/b"} {
			exit(pass(c, name, 2))
		}
		f.add(since)
		c.Seal()
		exit(pass(c, "/new", 3))
		if got := collector.RulesOfName(c, "/a") != nil; got != own {
			t.Errorf("%v after its last pass, /a has its own limiter: %t, want %t", since, got, own)
		}
		if n := len(pass(c, "/b", 4)); n != 3 && since > time.Second || n > 1 && since <= time.Second {
			t.Errorf("%v after its last pass, %d more calls of /b passed", since, n)
		}
	}
}

// A call finds the limiter of its name, and then locks this limiter. In between, another goroutine can drop the
// limiter. The call must then look up its name again.
func TestCallDoesNotCountInADroppedLimiter(t *testing.T) {
	c, _ := crowded(t, 2)
	limit(t, c, qps("*", 3))
	exit(pass(c, "x", 1))
	if !collector.FoundBeforeItWasDropped(c, "y") {
		t.Error("the call counts in a limiter that was dropped")
	}
	if n := len(pass(c, "y", 9)); n != 3 {
		t.Errorf("%d passed, want 3", n)
	}
}
