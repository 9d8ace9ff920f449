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

// A name that has not earned a resource is limited like a name that finds no free slot in the table: it neither escapes
// a limit nor uses the quota of another name. This test repeats the tests of overflowing names with unearned names.
func TestLimitsOfNamesThatAreNotEarned(t *testing.T) {
	unearned = []collector.CallOption{collector.FallbackResource(unmatched)}
	defer func() { unearned = nil }()
	for name, test := range map[string]func(*testing.T){
		"lock nobody out":       TestMadeUpNamesDoNotUseTheQuotaOfOthers,
		"reload":                TestReloadKeepsUsedQuota,
		"reload, in flight":     TestReloadKeepsCallsInFlight,
		"a limit on the name":   TestFirstLimitOnANameKeepsUsedQuota,
		"waiting":               TestWaitingCallsOfOverflowingNames,
		"passed elsewhere":      TestPassedCallsAreInFlight,
		"bounded":               TestOverflowLimitersAreBounded,
		"shared":                TestNamesShareLimitersWhenTheTableIsFull,
		"room after it":         TestOwnLimiterKeepsSharedPasses,
		"limits of all of them": testLimitOfUnmatched,
	} {
		t.Run(name, test)
	}
}

// The resource "unmatched" records the calls of many names. A limit on this resource counts all these calls together.
func testLimitOfUnmatched(t *testing.T) {
	c, _ := crowded(t, 10)
	limit(t, c, qps(unmatched, 3), qps("*", 2))
	if a, b, own := pass(c, "a", 3), pass(c, "b", 3), pass(c, unmatched, 3); len(a) != 2 || len(b) != 1 ||
		len(own) != 0 {
		t.Errorf("%d, %d and %d passed, want 2, 1 and 0", len(a), len(b), len(own))
	}
}

// Regression: a name that had used up its quota earned a resource, and got a second quota. There was a second defect:
// if a call of the name was in flight when the name earned its resource, the end of this call was subtracted twice from
// the calls in flight.
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
		t.Errorf("%d entered beside ten, want 5", n)
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
// Health.Unearned. A name in a limit, and a name that the program registers, has its own resource, which counts its
// calls.
func TestUnearnedCallsAreCountedOnce(t *testing.T) {
	c, _ := clocked(t, collector.Options{Given: []string{"route", "route", collector.Other}, MaxResources: 3})
	limit(t, c, qps("named", 100), qps("/*", 1))
	c.Resource("code")
	for _, name := range []string{"route", "named", "code", "/a", "/b", unmatched} {
		exit(pass(c, name, 2, collector.FallbackResource(unmatched)))
		c.Block(t.Context(), name, "outside", collector.FallbackResource(unmatched), collector.Batch(3))
	}
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

// Names earn their resources while their calls enter and leave under limits. No limit is exceeded, and no call is lost.
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
					t.Errorf("%d of %s are in flight", inFlight[name], name)
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
			t.Errorf("/%d: %d entered when all had left, want %d", i, n, most)
		}
	}
}
