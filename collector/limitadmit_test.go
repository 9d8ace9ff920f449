package collector_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// The age of a call counts from the time in the option StartedAt. The test makes calls without a limit, with a limit,
// with a dry run, and of an overflowing name. It repeats these calls with the option Admitted and with the option
// Passed.
func TestAgeOfACallThatStartedEarlier(t *testing.T) {
	for name, limits := range map[string][]collector.Limit{
		"no limit": nil, "limit": {qps("x", 5)}, "overflowing name": {flying("x*", 5)}, "dry run": dry(flying("x", 0)),
	} {
		for _, opts := range [][]collector.CallOption{nil, {collector.Admitted()}, {collector.Passed()}} {
			c, f := clocked(t, collector.Options{MaxResources: 1})
			if strings.HasPrefix(name, "overflow") {
				c.Resource("taken")
			}
			limit(t, c, limits...)
			opts = append(opts, collector.StartedAt(f.now().Add(-3*time.Second)))
			_, e, err := c.Enter(t.Context(), "x", opts...)
			if err != nil {
				t.Fatal(err)
			}
			f.add(time.Second)
			if got := c.Oldest(2); len(got) != 1 || got[0].Age != 4*time.Second {
				t.Errorf("%s, %d options: %v in flight, want one call with an age of 4s", name, len(opts), got)
			}
			e.Exit(nil)
		}
	}
}

// A prioritized call waits only if a limit on QPS would refuse the call. A limit on concurrency refuses the call
// immediately.
func TestPrioritizedCallDoesNotWaitForConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		limit(t, c, flying("a", 1), qps("a", 100))
		e := c.Resource("a").Enter()
		defer e.Exit(nil)
		start := time.Now()
		_, _, err := c.Enter(t.Context(), "a", collector.Prioritized())
		var blocked *collector.BlockedError
		if !errors.As(err, &blocked) || blocked.Limit.Grade != collector.Concurrency || blocked.Cancelled != nil {
			t.Errorf("error %v, want a block by the limit on concurrency", err)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the call waited for %v", d)
		}
	})
}

// If the context of a waiting call ends, the error of the call wraps the cause of the context, not only
// context.Canceled.
func TestCauseOfACancelledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		limit(t, c, qps("a", 1))
		e := c.Resource("a").Enter()
		defer e.Exit(nil)
		time.Sleep(600 * ms) // a call can now borrow from the bucket that begins at 1 s
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("shutdown")
		time.AfterFunc(ms, func() { cancel(cause) })
		_, _, err := c.Enter(ctx, "a", collector.Prioritized())
		if !errors.Is(err, cause) || !errors.Is(err, collector.ErrBlocked) {
			t.Errorf("error %v, want a block with cause %v", err, cause)
		}
	})
}

// If the clock of Options.Now makes no progress, a prioritized call stops waiting after one second.
func TestStoppedClockEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := clocked(t, collector.Options{})
		limit(t, c, qps("a", 1))
		e := c.Resource("a").Enter()
		defer e.Exit(nil)
		f.add(600 * ms)
		start := time.Now()
		_, _, err := c.Enter(t.Context(), "a", collector.Prioritized())
		if !errors.Is(err, collector.ErrBlocked) || !strings.Contains(err.Error(), "clock") {
			t.Errorf("error %v, want a block because of the clock", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("the call waited for %v, want 1s", d)
		}
	})
}

// The first limit on an origin counts the passes that the origin had in the last second.
func TestFirstLimitOnAnOriginCountsItsPasses(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	exit(pass(c, "a", 4, collector.Origin("web")))
	exit(pass(c, "a", 9, collector.Origin("bot")))
	limit(t, c, collector.Limit{Resource: "a", Origin: "web", Count: 6})
	if n := len(pass(c, "a", 9, collector.Origin("web"))); n != 2 {
		t.Errorf("%d calls of web passed after 4 earlier passes, want 2 under a limit of 6", n)
	}
}

// The names "shared 1" and "shared 2" share a limiter. Calls of "shared 1" are in flight while all limits are removed
// and set again. The limiter then still counts these calls, so it refuses a call of "shared 2".
func TestSharedLimiterKeepsCallsInFlight(t *testing.T) {
	c, _ := crowded(t, 2)
	limit(t, c, flying("*", 2))
	for _, name := range []string{"busy 1", "busy 2"} {
		pass(c, name, 1)
	}
	list := pass(c, "shared 1", 2)
	limit(t, c)
	limit(t, c, flying("*", 2))
	if n := len(pass(c, "shared 2", 1)); n != 0 || len(list) != 2 {
		t.Errorf("%d calls entered, and %d more after the limits were set again; want 2 and 0", len(list), n)
	}
	exit(list)
	if n := len(pass(c, "shared 2", 3)); n != 2 {
		t.Errorf("%d calls of shared 2 entered after the calls of shared 1 had ended, want 2", n)
	}
}

// Escapes reports true if a limit matches its first argument, but not its second argument.
func TestEscapes(t *testing.T) {
	c := newCollector(t, collector.Options{})
	limit(t, c, qps("GET /*", 1))
	for _, x := range []struct {
		name, as string
		want     bool
	}{
		{"GET /a", "GET /*", false},
		{"GET /a", "other", true},
		{"other", "GET /*", false},
	} {
		if got := c.Escapes(x.name, x.as); got != x.want {
			t.Errorf("Escapes(%q, %q) = %v", x.name, x.as, got)
		}
	}
}

// When a dry run would refuse a call for the first time, the Collector creates the statistic of the dry run. In this
// test, a new second begins after the call has read the clock, and before the Collector creates the statistic.
// Exporters may already have read the earlier second, so the statistic must begin in the new second.
func TestFirstRefusalOfADryRunChangesNoSealedSecond(t *testing.T) {
	f := new(fakeClock)
	var turns atomic.Bool // if true, the clock advances by a second after the next reading
	c := newCollector(t, collector.Options{Now: func() time.Time {
		now := f.now()
		if turns.CompareAndSwap(true, false) {
			f.add(time.Second)
		}
		return now
	}})
	limit(t, c, dry(flying("a", 0))...)
	r := c.Resource("a")
	r.Enter() // this call creates the leaf; no limit or dry run refuses calls through Resource.Enter
	f.add(ms)
	turns.Store(true)
	if _, err := r.TryEnter(); err != nil {
		t.Fatal(err)
	}
	f.add(time.Second)
	for _, v := range r.DryRuns() {
		var blocks []int64
		for _, s := range v.Last(5) {
			blocks = append(blocks, s.Block)
		}
		if len(blocks) != 1 || blocks[0] != 1 {
			t.Errorf("blocks by second: %v, want one block, in the second in which the statistic began", blocks)
		}
	}
}
