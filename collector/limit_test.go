package collector_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// fakeClock is a clock for a Collector. The clock changes only when the test sets it.
type fakeClock struct{ ns atomic.Int64 }

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (f *fakeClock) now() time.Time          { return epoch.Add(time.Duration(f.ns.Load())) }
func (f *fakeClock) set(since time.Duration) { f.ns.Store(int64(since)) }
func (f *fakeClock) add(d time.Duration)     { f.ns.Add(int64(d)) }

func clocked(t testing.TB, o collector.Options) (*collector.Collector, *fakeClock) {
	t.Helper()
	f := new(fakeClock)
	o.Now = f.now
	return newCollector(t, o), f
}

func limit(t testing.TB, c *collector.Collector, limits ...collector.Limit) {
	t.Helper()
	if err := c.SetLimits(limits); err != nil {
		t.Fatal(err)
	}
}

// try sets the clock to epoch + at, tries n calls of the resource "a", and returns the number of passes.
func try(c *collector.Collector, f *fakeClock, at time.Duration, n int) (passed int) {
	f.set(at)
	for range n {
		if e, err := c.Resource("a").TryEnter(); err == nil {
			e.Exit(nil)
			passed++
		}
	}
	return passed
}

// Fixed windows admit up to twice the limit in a second that contains a window boundary. The test has a limit of 100,
// and makes 20 calls at 0.1 s, 80 calls at 0.9 s, 80 calls at 1.1 s and 20 calls at 1.9 s. In the second from 0.5 s to
// 1.5 s, fixed windows admit 80 + 80 = 160 calls; the sliding window admits 80 + 20 = 100.
func TestNoBurstAtWindowBoundary(t *testing.T) {
	c, f := clocked(t, collector.Options{})
	limit(t, c, collector.Limit{Resource: "a", Count: 100})
	fixed := map[time.Duration]int{} // passes under fixed windows of one second, by start of the window
	var between, fixedBetween int
	for _, burst := range []struct {
		at time.Duration
		n  int
	}{{100 * ms, 20}, {900 * ms, 80}, {1100 * ms, 80}, {1900 * ms, 20}} {
		passed := try(c, f, burst.at, burst.n)
		window := burst.at.Truncate(time.Second)
		fixedPassed := min(burst.n, 100-fixed[window])
		fixed[window] += fixedPassed
		if burst.at > 500*ms && burst.at < 1500*ms {
			between += passed
			fixedBetween += fixedPassed
		}
	}
	if between != 100 || fixedBetween != 160 {
		t.Errorf("%d passes from 0.5 s to 1.5 s, want 100; %d with fixed windows, want 160", between, fixedBetween)
	}
}

// Without Strict, a second that begins inside a bucket can hold twice the limit: half of the passes near the beginning
// of the second, and half near the end. An interval that is one bucket shorter than a second never holds more than the
// limit. With Strict, no second holds more than the limit, wherever the second begins.
func TestUnalignedSecondHoldsTwiceTheLimitAtMost(t *testing.T) {
	for _, tc := range []struct {
		buckets int
		strict  bool
		want    int // passes in the second that begins 1 ms before the end of the first bucket
	}{{2, false, 200}, {10, false, 200}, {2, true, 100}, {10, true, 100}, {1, false, 200}, {1, true, 100}} {
		c, f := clocked(t, collector.Options{Windows: node.Options{SampleCount: tc.buckets}})
		limit(t, c, collector.Limit{Resource: "a", Count: 100, Strict: tc.strict})
		length := time.Second / time.Duration(tc.buckets)
		passed := try(c, f, length-ms, 150)
		inside := 0
		for at := length; at < time.Second; at += length / 4 {
			inside += try(c, f, at, 150)
		}
		passed += inside + try(c, f, time.Second+length-2*ms, 150)
		if passed != tc.want || inside != 0 {
			t.Errorf(
				"%d buckets, strict %t: %d passes, %d of them in between; want %d and 0",
				tc.buckets,
				tc.strict,
				passed,
				inside,
				tc.want,
			)
		}
	}
}

// 64 goroutines make calls under a limit while the clock advances. The limit is strict in half of the runs. In each
// run, no second that begins at a bucket's start holds more passes than the limit. Every call is a pass or a block.
func TestNoWindowHoldsMoreThanItsLimit(t *testing.T) {
	for _, tc := range []struct {
		buckets int
		strict  bool
	}{{2, false}, {10, false}, {2, true}, {10, true}} {
		t.Run(fmt.Sprintf("%d buckets, strict %t", tc.buckets, tc.strict), func(t *testing.T) {
			const count, goroutines = 1000, 64
			length := 10 * time.Second
			if testing.Short() {
				length = 2 * time.Second
			}
			c, f := clocked(t, collector.Options{Windows: node.Options{SampleCount: tc.buckets}})
			limit(t, c, collector.Limit{Resource: "*", Count: count, Strict: tc.strict})
			origins := []string{"x", "y", "z"}
			var calls, blocks atomic.Int64
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					for i := 0; f.ns.Load() < int64(length); i++ {
						n := int64(1)
						if i%7 == 0 {
							n = 3
						}
						if g == 0 || i%50 == 0 { // advance the clock while other goroutines make calls
							f.add(time.Millisecond)
						}
						_, e, err := c.Enter(t.Context(), "a", collector.Batch(n), collector.Origin(origins[g%3]))
						calls.Add(n)
						if err != nil {
							blocks.Add(n)
						}
						e.Exit(nil)
					}
				})
			}
			wg.Wait()
			f.add(3 * time.Second)
			r := c.Resource("a")
			open := c.Seal().Open
			var busiest int64
			for i := r.View().Node().Since(); i < open; i++ {
				m, ok := r.View().Node().Second(i)
				if !ok || m.PassPeak > count || m.Pass > count {
					t.Errorf("second %d: %+v, %t", i, m, ok)
				}
				busiest = max(busiest, m.Pass)
			}
			s := r.Snapshot(nil)
			if s.Total.Pass+s.Total.Block != calls.Load() || s.Total.Block != blocks.Load() || s.InFlight != 0 {
				t.Errorf("%+v of %d calls, %d blocked", s, calls.Load(), blocks.Load())
			}
			if busiest < count*6/10 {
				t.Errorf("the busiest second holds %d passes, want at least %d", busiest, count*6/10)
			}
		})
	}
}

// Some calls are prioritized, and some of these calls wait for a later bucket. The contexts of some waiting calls end
// before this bucket begins. No second that begins at a bucket's start holds more passes than the limit. If the limit
// is strict, no other second holds more passes either. In the synctest bubble, the clock advances only while all
// goroutines wait, so the time of each call is exact.
func TestNoWindowHoldsMoreThanItsLimitWithPriorities(t *testing.T) {
	for _, tc := range []struct {
		buckets int
		strict  bool
	}{{2, false}, {10, false}, {2, true}, {10, true}} {
		t.Run(fmt.Sprintf("%d buckets, strict %t", tc.buckets, tc.strict), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const count, goroutines = 200, 64
				c := newCollector(t, collector.Options{Windows: node.Options{SampleCount: tc.buckets}})
				limit(t, c, collector.Limit{Resource: "a", Count: count, Strict: tc.strict})
				begin := time.Now()
				var mu sync.Mutex
				var passes []time.Duration
				var calls, blocks, cancelled, waited int64
				var wg sync.WaitGroup
				for g := range goroutines {
					random := rand.New(rand.NewPCG(uint64(g), 3))
					wg.Go(func() {
						for time.Since(begin) < 10*time.Second {
							opts := []collector.CallOption{collector.Origin(fmt.Sprint(g % 3))}
							if g%2 == 0 {
								opts = append(opts, collector.Prioritized())
							}
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(600*ms))))
							from := time.Now()
							_, e, err := c.Enter(ctx, "a", opts...)
							mu.Lock()
							calls++
							switch {
							case err == nil:
								passes = append(passes, time.Since(begin))
								if took := time.Since(from); took > node.OccupyTimeout {
									t.Errorf("waited %v", took)
								} else if took > 0 {
									waited++
								}
							case !errors.Is(err, collector.ErrBlocked):
								t.Error(err)
							case errors.Is(err, context.DeadlineExceeded):
								cancelled++
								fallthrough
							default:
								blocks++
							}
							mu.Unlock()
							cancel()
							time.Sleep(time.Duration(random.Int64N(int64(20 * ms))))
							e.Exit(nil)
						}
					})
				}
				wg.Wait()
				time.Sleep(3 * time.Second)
				slices.Sort(passes)
				length := time.Second / time.Duration(tc.buckets)
				// A strict limit applies to every second. Check only the seconds that begin with a pass, because one of
				// them holds the most passes. A limit that is not strict applies only to seconds that begin at a
				// bucket's start. For such a limit, check each second whose first bucket contains a pass.
				for i, at := range passes {
					from := at.Truncate(length)
					if tc.strict {
						from = at
					}
					n := 0
					for _, x := range passes[i:] {
						if x < from+time.Second {
							n++
						}
					}
					for _, x := range passes[:i] {
						if x >= from {
							n++
						}
					}
					if n > count {
						t.Fatalf("%d passes in the second from %v", n, from)
					}
				}
				r := c.Resource("a")
				s := r.Snapshot(nil)
				if s.Total.Pass != int64(len(passes)) || s.Total.Block != blocks ||
					s.Total.Pass+s.Total.Block != calls ||
					s.Total.OccupiedPass != waited {
					t.Errorf(
						"%+v; %d passes, %d blocks, %d calls, %d waited",
						s.Total,
						len(passes),
						blocks,
						calls,
						waited,
					)
				}
				var reasons int64
				for reason, n := range r.Blocks() {
					if reasons += n; reason == collector.Cancelled && n != cancelled {
						t.Errorf("%d blocks have the reason Cancelled, want %d", n, cancelled)
					}
				}
				waiting, _ := r.View().Node().Waiting(c.Timeline().Now())
				if reasons != blocks || cancelled == 0 || waited == 0 || s.InFlight != 0 || waiting != 0 {
					t.Errorf(
						"%d blocks by reason, %d blocks, %d cancelled, %d waited, %d in flight",
						reasons,
						blocks,
						cancelled,
						waited,
						s.InFlight,
					)
				}
			})
		})
	}
}

// The number of calls in flight never exceeds a limit on concurrency. This holds for the limit on all calls, and for
// the limit on the calls of one origin.
func TestConcurrencyLimit(t *testing.T) {
	c := newCollector(t, collector.Options{})
	limit(t, c, collector.Limit{Resource: "a", Grade: collector.Concurrency, Count: 5},
		collector.Limit{Resource: "a", Origin: "x", Grade: collector.Concurrency, Count: 2})
	var flying, x, passed atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		origin := []string{"x", "y"}[g%2]
		wg.Go(func() {
			for range 2000 {
				_, e, err := c.Enter(t.Context(), "a", collector.Origin(origin))
				if err != nil {
					continue
				}
				passed.Add(1)
				if n := flying.Add(1); n > 5 {
					t.Errorf("%d in flight", n)
				}
				if origin == "x" {
					if n := x.Add(1); n > 2 {
						t.Errorf("%d of x in flight", n)
					}
					x.Add(-1)
				}
				flying.Add(-1)
				e.Exit(nil)
			}
		})
	}
	wg.Wait()
	if passed.Load() < 100 {
		t.Errorf("%d passed", passed.Load())
	}
}

func TestBlockedError(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	limit(
		t,
		c,
		collector.Limit{Resource: "GET /*", Origin: "web", Count: 1},
		collector.Limit{Resource: "*", Grade: collector.Concurrency, Count: 9},
	)
	enter := func() error {
		_, _, err := c.Enter(t.Context(), "GET /x", collector.Origin("web"))
		return err
	}
	if err := enter(); err != nil {
		t.Fatal(err)
	}
	err := enter()
	var blocked *collector.BlockedError
	if !errors.Is(err, collector.ErrBlocked) || !errors.As(err, &blocked) {
		t.Fatal(err)
	}
	want := collector.BlockedError{
		Limit:    collector.Limit{Resource: "GET /*", Origin: "web", Count: 1},
		Resource: "GET /x",
		Origin:   "web",
		Reading:  1,
	}
	if *blocked != want {
		t.Errorf("%+v", *blocked)
	}
	text := `collector: blocked: "GET /x" from "web": limit "qps GET /* from web" of 1 is used up: 1`
	if got := err.Error(); got != text {
		t.Errorf("%s\nwant %s", got, text)
	}
	reasons := map[string]int64{}
	for reason, n := range c.Resource("GET /x").Blocks() {
		reasons[reason] = n
	}
	if len(reasons) != 2 || reasons["qps GET /* from web"] != 1 || reasons["concurrency *"] != 0 {
		t.Errorf("reasons %v", reasons)
	}
}

// Each resource that matches a pattern has its own quota. A call passes only if all matching limits admit the call.
func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true},
		{"a", "ab", false},
		{"a*", "a", true},
		{"a*", "abc/d e", true},
		{"*", "", true},
		{"*a", "ba", true},
		{"*a", "ab", false},
		{"a*b*c", "abc", true},
		{"a*b*c", "a/b/b/c", true},
		{"a*b*c", "acb", false},
		{"*ab*ab*", "ab", false},
		{"*ab*ab", "abxab", true},
		{"a*a", "a", false},
		{"**", "x", true},
		{"a?", "ab", false},
		{"[a]", "a", false},
	} {
		if got := (collector.Limit{Resource: tc.pattern}).Matches(tc.name); got != tc.want {
			t.Errorf("%q matches %q: %t", tc.pattern, tc.name, got)
		}
	}

	c, _ := clocked(t, collector.Options{})
	limit(t, c, collector.Limit{Resource: "a*", Count: 5}, collector.Limit{Resource: "*b", Count: 3})
	for name, want := range map[string]int{"a1": 5, "a2": 5, "ab": 3, "xb": 3, "other": 20} {
		passed := 0
		for range 20 {
			if _, err := c.Resource(name).TryEnter(); err == nil {
				passed++
			}
		}
		if passed != want {
			t.Errorf("%s: %d passed, want %d", name, passed, want)
		}
	}
}

// New limits count the passes of the last second and the calls in flight, even if no earlier limit counted them.
func TestLimitsAreReplaced(t *testing.T) {
	c, f := clocked(t, collector.Options{})
	r := c.Resource("a")
	f.set(300 * ms)
	r.Enter()
	f.set(700 * ms)
	r.Enter()
	c.Enter(t.Context(), "a", collector.Origin("x"))
	pass := func(limits ...collector.Limit) (n int) {
		limit(t, c, limits...)
		for range 10 {
			if e, err := r.TryEnter(); err == nil {
				e.Exit(nil)
				n++
			}
		}
		return n
	}
	qps := func(n int64) collector.Limit { return collector.Limit{Resource: "a", Count: n} }
	flying := func(n int64) collector.Limit {
		return collector.Limit{Resource: "a", Grade: collector.Concurrency, Count: n}
	}
	for i, tc := range []struct {
		at     time.Duration
		limits []collector.Limit
		want   int
	}{
		{800 * ms, []collector.Limit{qps(5)}, 2}, // three calls have passed, so 5 - 3 = 2 calls pass
		{800 * ms, []collector.Limit{qps(6)}, 1},
		// The pass at 300 ms has left the window. Five passes remain, so 6 - 5 = 1 call passes.
		{1200 * ms, []collector.Limit{qps(6)}, 1},
		{1200 * ms, []collector.Limit{qps(7)}, 1},
		{1200 * ms, []collector.Limit{qps(7), flying(3)}, 0},
		{3 * time.Second, []collector.Limit{flying(3)}, 0},
		{3 * time.Second, []collector.Limit{flying(4)}, 10},
		{3 * time.Second, nil, 10},
		{3 * time.Second, []collector.Limit{qps(25)}, 5},
		{3 * time.Second, []collector.Limit{qps(0)}, 0},
	} {
		f.set(tc.at)
		if got := pass(tc.limits...); got != tc.want {
			t.Errorf("%d: %v: %d passed, want %d", i, tc.limits, got, tc.want)
		}
	}
}

// New limits count the pass that a waiting call has borrowed from a later bucket.
func TestLimitsAreReplacedWhileACallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		limit(t, c, collector.Limit{Resource: "a", Count: 2})
		r := c.Resource("a")
		for range 2 {
			if _, err := r.TryEnter(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(600 * ms)
		done := make(chan error)
		go func() {
			_, _, err := c.Enter(t.Context(), "a", collector.Prioritized())
			done <- err
		}()
		synctest.Wait()
		limit(t, c, collector.Limit{Resource: "*", Count: 2})
		time.Sleep(500 * ms) // sleep until 1.1 s; the bucket with the borrowed pass opens at 1.0 s
		if err := <-done; err != nil {
			t.Error(err)
		}
		_, first := r.TryEnter()
		_, second := r.TryEnter()
		if first != nil || second == nil {
			t.Errorf("first call: %v, second call: %v; want one pass, because the borrowed pass counts", first, second)
		}
	})
}

// No limit refuses calls that enter through Resource.Enter or with the option Admitted, but these calls use quota.
func TestAdmittedCallsUseQuota(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	limit(
		t,
		c,
		collector.Limit{Resource: "a", Count: 3},
		collector.Limit{Resource: "a", Grade: collector.Concurrency, Count: 9},
	)
	r := c.Resource("a")
	for range 2 {
		r.Enter()
		if _, _, err := c.Enter(t.Context(), "a", collector.Admitted()); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.TryEnter(); err == nil {
		t.Error("a fifth call passed")
	}
	if err := r.Do(func() error { t.Error("the function runs"); return nil }); !errors.Is(err, collector.ErrBlocked) {
		t.Error(err)
	}
	if s := r.Snapshot(nil); s.Total.Pass != 4 || s.Total.Block != 2 || s.InFlight != 4 {
		t.Errorf("%+v", s)
	}
}

func TestInvalidLimits(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	limit(t, c, collector.Limit{Resource: "a", Count: 1})
	err := c.SetLimits([]collector.Limit{
		{Resource: "good", Count: 1},
		{Count: 1},
		{Resource: "b", Count: -1},
		{Resource: "c", Grade: 7},
		{Resource: "good", Count: 2},
		{Resource: "d", Grade: collector.Concurrency, Strict: true},
		{Resource: strings.Repeat("x", 300)},
		{Resource: "e", Origin: "\xff"},
		{Resource: "good", Count: 2, Grade: collector.Concurrency},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"limit 2: resource is empty", "limit 3: qps is -1", "limit 4: unknown grade Grade(7)",
		`limit 5: "qps good" is already limited to 1 by limit 1`, "limit 6: strict applies to qps only",
		"limit 7: resource", "limit 8: origin",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 7 {
		t.Errorf("%d invalid limits:\n%v", n, err)
	}
	if got := c.Limits(); len(got) != 1 || got[0].Resource != "a" {
		t.Errorf("limits %v", got)
	}
}

// If a waiting call is cancelled, the quota gets the borrowed pass back. Other calls can then use this pass.
func TestCancelledCallReturnsItsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		limit(t, c, collector.Limit{Resource: "a", Count: 3})
		r := c.Resource("a")
		for range 3 {
			if _, err := r.TryEnter(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(600 * ms)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 3)
		for range 3 {
			go func() {
				_, _, err := c.Enter(ctx, "a", collector.Prioritized())
				done <- err
			}()
		}
		synctest.Wait()
		if _, _, err := c.Enter(t.Context(), "a", collector.Prioritized()); !errors.Is(err, collector.ErrBlocked) {
			t.Errorf("a fourth call: %v", err)
		}
		cancel()
		for range 3 {
			if err := <-done; !errors.Is(err, collector.ErrBlocked) || !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		time.Sleep(500 * ms)
		for i := range 3 {
			if _, err := r.TryEnter(); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		}
	})
}

// A prioritized call waits for half a second at most. If the next bucket begins more than half a second after the
// arrival of the call, the call is refused on arrival.
func TestWaitIsHalfASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{Windows: node.Options{SampleCount: 1}})
		limit(t, c, collector.Limit{Resource: "a", Count: 1})
		c.Resource("a").Enter()
		time.Sleep(499 * ms)
		if _, _, err := c.Enter(t.Context(), "a", collector.Prioritized()); !errors.Is(err, collector.ErrBlocked) {
			t.Error(err)
		}
		time.Sleep(ms)
		if _, _, err := c.Enter(t.Context(), "a", collector.Prioritized()); err != nil || time.Now().Nanosecond() != 0 {
			t.Error(err, time.Now())
		}
	})
}

// A limit on one origin does not apply to other origins.
func TestLimitsOnOrigins(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	limit(t, c, collector.Limit{Resource: "a", Origin: "bot", Count: 2}, collector.Limit{Resource: "a", Count: 6})
	passed := map[string]int{}
	for range 10 {
		for _, origin := range []string{"bot", "human"} {
			if _, _, err := c.Enter(t.Context(), "a", collector.Origin(origin)); err == nil {
				passed[origin]++
			}
		}
	}
	if passed["bot"] != 2 || passed["human"] != 4 {
		t.Errorf("%v", passed)
	}
}

// Resource.Blocks yields the names of the limits in force. It also yields the names of removed limits that have refused
// a call.
func TestReasonsOfLimitsInForce(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	r := c.Resource("a")
	for i := range 30 {
		limit(t, c, collector.Limit{Resource: "a" + strings.Repeat("*", i), Count: 0})
		if i%10 == 0 {
			_, _ = r.TryEnter()
		}
	}
	var got []string
	for reason, n := range r.Blocks() {
		got = append(got, fmt.Sprintf("%s %d", reason, n))
	}
	want := []string{
		"qps a 1",
		"qps a********** 1",
		"qps a" + strings.Repeat("*", 20) + " 1",
		"qps a" + strings.Repeat("*", 29) + " 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Resource.Limit returns the lowest limit of a grade. It ignores limits on single origins.
func TestResourceLimit(t *testing.T) {
	c, _ := clocked(t, collector.Options{MaxResources: 2})
	limit(t, c,
		collector.Limit{Resource: "a*", Count: 5},
		collector.Limit{Resource: "a", Count: 7},
		collector.Limit{Resource: "a", Origin: "web", Count: 1},
		collector.Limit{Resource: "*b", Count: 3, Grade: collector.Concurrency},
	)
	for _, name := range []string{"a", "b", "ab"} {
		c.Resource(name).Enter()
	}
	for _, tc := range []struct {
		resource string
		grade    collector.Grade
		count    int64
		ok       bool
	}{
		{"a", collector.QPS, 5, true},
		{"a", collector.Concurrency, 0, false},
		{"b", collector.QPS, 0, false},
		{"b", collector.Concurrency, 3, true},
		// The table of resources is full, so Other records the calls of "ab". Other can also record calls of names
		// without a limit, so Resource.Limit returns no limit for Other.
		{collector.Other, collector.QPS, 0, false},
	} {
		if n, ok := c.Resource(tc.resource).Limit(tc.grade); n != tc.count || ok != tc.ok {
			t.Errorf("%s of %s: %d, %v", tc.grade, tc.resource, n, ok)
		}
	}
	limit(t, c, collector.Limit{Resource: "*", Count: 1}, collector.Limit{Resource: collector.Other, Count: 2})
	// For Other, Resource.Limit ignores the limit on "*", because this limit applies separately to each name that Other
	// records.
	if n, ok := c.Resource(collector.Other).Limit(collector.QPS); n != 2 || !ok {
		t.Errorf("after the limits were replaced, Other has the limit %d (%v), want 2", n, ok)
	}
	limit(t, c)
	if n, ok := c.Resource("a").Limit(collector.QPS); ok {
		t.Errorf("without limits, the resource a has the limit %d", n)
	}
	if _, ok := (*collector.Resource)(nil).Limit(collector.QPS); ok {
		t.Error("a nil Resource has a limit")
	}
}

// A limit on the name of a view is invalid, because no resource can have this name.
func TestLimitOnAViewIsInvalid(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	for _, name := range []string{collector.InboundTotal, collector.Root} {
		if err := c.SetLimits([]collector.Limit{{Resource: name}}); err == nil ||
			!strings.Contains(err.Error(), "reserved name of a view") {
			t.Error(err)
		}
	}
}
