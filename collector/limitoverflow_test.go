package collector_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A name that has used a shared limiter can get its own limiter later. The name's own limiter then starts with the
// passes that each origin has in the shared limiter.
func TestANameKeepsThePassesOfItsOrigins(t *testing.T) {
	c, f := crowded(t, 1)
	limit(t, c, collector.Limit{Resource: "*", Origin: "web", Count: 5})
	exit(pass(c, "a", 1, collector.Origin("web")))
	f.add(4900 * ms)
	// The last pass of "a" was 4.9 s ago, so "a" is not idle and keeps the only slot. "x" uses the shared limiter.
	exit(pass(c, "x", 4, collector.Origin("web")))
	f.add(200 * ms) // after 5.1 s without a pass, "a" is idle; the next call of "x" takes the slot
	if n := len(pass(c, "x", 9, collector.Origin("web"))); n != 1 {
		t.Errorf("%d calls passed after 4 in the shared limiter, want 1 under a limit of 5", n)
	}
}

// If an overflowing name gets a resource, new limits on QPS count the earlier passes of the name and the later passes
// of the resource. Each pass counts once: the limiter has a copy of the earlier passes, and the views of the resource
// have the later passes.
func TestLaterPassesOfANewResourceCountOnce(t *testing.T) {
	c, _ := crowded(t, 1)
	limit(t, c, qps("*", 10))
	exit(pass(c, "x", 2))
	// A name in a limit without a * gets a resource even if the table is full. The next call of "x" registers this
	// resource.
	limit(t, c, qps("*", 10), flying("x", 100))
	exit(pass(c, "x", 3))
	limit(t, c, flying("x", 100))
	limit(t, c, qps("x", 10))
	if n := len(pass(c, "x", 20)); n != 5 {
		t.Errorf("%d calls passed after 5 earlier passes, want 5 under a limit of 10", n)
	}
}

// In the limiter of an overflowing name, a meter counts the calls of an origin. The limiter keeps the meter while the
// origin has calls in flight, or while a limit reads the meter. Otherwise, the limiter drops the meter.
func TestOverflowLimiterForgetsOrigins(t *testing.T) {
	c, _ := crowded(t, 1)
	limit(t, c, flying("*", 5))
	first := pass(c, "x", 1)
	for i := range 5 {
		exit(pass(c, "x", 1, collector.Origin(fmt.Sprint("o", i))))
	}
	if n := collector.OriginsOfName(c, "x"); n != 0 {
		t.Errorf("the limiter has meters for %d origins after all calls of these origins have ended", n)
	}
	exit(first)
}

// A cancelled batch returns all its borrowed passes.
func TestCancelledBatchReturnsAllPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		limit(t, c, qps("a", 4))
		exit(pass(c, "a", 4))
		time.Sleep(600 * ms)
		ctx, cancel := context.WithTimeout(t.Context(), ms)
		defer cancel()
		if _, _, err := c.Enter(ctx, "a", collector.Prioritized(), collector.Batch(4)); err == nil {
			t.Fatal("the batch passed before its bucket began")
		}
		time.Sleep(400 * ms) // sleep until 1.001 s; the bucket with the borrowed passes opens at 1.0 s
		if n := len(pass(c, "a", 9)); n != 4 {
			t.Errorf("%d calls passed, want 4", n)
		}
	})
}
