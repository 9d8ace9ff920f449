package collector_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

const unmatched = "unmatched"

// A name that has not earned a resource is limited in the same way as a name without a free slot in the table of
// resources. The name cannot escape a limit, and cannot use the quota of another name. This test repeats the tests of
// overflowing names with names that are not earned.
func TestLimitsOfNamesThatAreNotEarned(t *testing.T) {
	unearned = []collector.CallOption{collector.FallbackResource(unmatched)}
	defer func() { unearned = nil }()
	for name, test := range map[string]func(*testing.T){
		"quota of other names": TestMadeUpNamesDoNotUseTheQuotaOfOthers,
		"reload":               TestReloadKeepsUsedQuota,
		"reload, in flight":    TestReloadKeepsCallsInFlight,
		"a limit on the name":  TestFirstLimitOnANameKeepsUsedQuota,
		"waiting calls":        TestWaitingCallsOfOverflowingNames,
		"passed elsewhere":     TestPassedCallsAreInFlight,
		"number of limiters":   TestOverflowLimitersAreBounded,
		"shared limiters":      TestNamesShareLimitersWhenTheTableIsFull,
		"own limiter, later":   TestOwnLimiterKeepsSharedPasses,
		"fallback resource":    testLimitOfUnmatched,
	} {
		t.Run(name, test)
	}
}

// The resource "unmatched" records the calls of many names. A limit on this resource counts all these calls together.
// Here this limit is 3, and the pattern gives each name a quota of 2. First, 2 calls of a pass. Then 1 call of b passes
// and uses up the limit of 3. After that, no call of "unmatched" itself passes.
func testLimitOfUnmatched(t *testing.T) {
	c, _ := crowded(t, 10)
	limit(t, c, qps(unmatched, 3), qps("*", 2))
	if a, b, own := pass(c, "a", 3), pass(c, "b", 3), pass(c, unmatched, 3); len(a) != 2 || len(b) != 1 ||
		len(own) != 0 {
		t.Errorf("%d, %d and %d passed, want 2, 1 and 0", len(a), len(b), len(own))
	}
}

// Regression: a name that had used up its quota earned a resource, and got a second quota. There was a second defect: a
// call was in flight when its name earned a resource. The end of this call was subtracted twice from the calls in
// flight.
func TestEarnedNameKeepsItsQuota(t *testing.T) {
	c, f := clocked(t, collector.Options{})
	limit(t, c, qps("*", 10), flying("*", 15))
	enter := func(n int, opts ...collector.CallOption) (list []*collector.Entry) {
		return pass(c, "POST /checkout", n, opts...)
	}
	before := enter(7, collector.FallbackResource(unmatched))
	if after := enter(20, collector.FromRequest()); len(before) != 7 || len(after) != 3 {
		t.Errorf("%d and %d passed, want 7 and 3", len(before), len(after))
	}
	f.add(time.Second)
	// The name has its own resource now, so the option FallbackResource has no effect.
	if n := len(enter(20, collector.FallbackResource(unmatched))); n != 5 {
		t.Errorf("%d calls entered in addition to ten in flight, want 5", n)
	}
	exit(before)
	if n := len(enter(20, collector.FromRequest())); n != 5 {
		t.Errorf("%d passed, want 5", n)
	}
	if s := c.Resource(unmatched).Snapshot(nil); s.Total.Pass != 7 || s.InFlight != 0 || c.Health().Unearned != 7 {
		t.Errorf("%+v, %+v", s, c.Health())
	}
}

// If a name has no resource, each of its passes and blocks counts once for the fallback resource, and once in
// Health.Unearned. The names in Options.Given, the names in limits, and the names that the program registers have their
// own resources, which record their calls.
func TestUnearnedCallsAreCountedOnce(t *testing.T) {
	c, _ := clocked(t, collector.Options{Given: []string{"route", "route", collector.Other}, MaxResources: 3})
	limit(t, c, qps("named", 100), qps("/*", 1))
	c.Resource("code")
	for _, name := range []string{"route", "named", "code", "/a", "/b", unmatched} {
		exit(pass(c, name, 2, collector.FallbackResource(unmatched)))
		c.Block(t.Context(), name, "outside", collector.FallbackResource(unmatched), collector.Batch(3))
	}
	// The resource "unmatched" records 2 passes and 3 blocks of its own name. For each of /a and /b, it records 1 pass
	// and 1 + 3 blocks. The sums are 2 + 2 * 1 = 4 passes and 3 + 2 * 4 = 11 blocks.
	for name, want := range map[string]node.Counts{
		"route": {Pass: 2, Block: 3}, "named": {Pass: 2, Block: 3}, "code": {
			Pass:  2,
			Block: 3,
		}, unmatched: {Pass: 4, Block: 11},
	} {
		got := c.Resource(name).Snapshot(nil).Total
		if got.Pass != want.Pass || got.Block != want.Block {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if h := c.Health(); h.Unearned != 10 || h.Overflow != 0 || h.Resources != 4 {
		t.Errorf("%+v", h)
	}
}

// Names earn their resources while their calls enter and end concurrently. The limit is never exceeded, and no call is
// lost.
func TestNamesAreEarnedUnderWriters(t *testing.T) {
	const most, names = 3, 40
	c := newCollector(t, collector.Options{MaxResources: 30})
	limit(t, c, flying("*", most))
	var wg sync.WaitGroup
	var mu sync.Mutex
	inFlight, passed, refused := map[string]int{}, 0, 0
	for g := range 8 {
		wg.Go(func() {
			for i := range 4000 {
				name := fmt.Sprint("/", (i*7+g)%names)
				opt := collector.FallbackResource(unmatched)
				if i > 100*((i*7+g)%names) {
					opt = collector.FromRequest()
				}
				_, e, err := c.Enter(context.Background(), name, opt)
				mu.Lock()
				if err != nil {
					refused++
				} else if passed, inFlight[name] = passed+1, inFlight[name]+1; inFlight[name] > most {
					t.Errorf("%d calls of %s are in flight", inFlight[name], name)
				}
				mu.Unlock()
				if err == nil {
					mu.Lock()
					inFlight[name]--
					mu.Unlock()
					e.Exit(nil)
				}
			}
		})
	}
	wg.Wait()
	var sum node.Counts
	for _, r := range c.Seal().Resources {
		s := r.Snapshot(nil)
		if sum = sum.Add(s.Total); s.InFlight != 0 {
			t.Errorf("%s: %d in flight", r.Name(), s.InFlight)
		}
	}
	if sum.Pass != int64(passed) || sum.Complete != int64(passed) || sum.Block != int64(refused) ||
		passed+refused != 8*4000 {
		t.Errorf("%+v, of %d passed and %d refused", sum, passed, refused)
	}
	for i := range names {
		if n := len(pass(c, fmt.Sprint("/", i), most+1)); n != most {
			t.Errorf("/%d: %d calls entered after all calls had ended, want %d", i, n, most)
		}
	}
}
