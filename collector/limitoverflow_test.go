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
	exit(pass(c, "x", 4, collector.Origin("web"))) // "a" is not idle yet, so "x" uses the shared limiter
	f.add(200 * ms)
	if n := len(pass(c, "x", 9, collector.Origin("web"))); n != 1 {
		t.Errorf("%d calls passed after 4, want 1 of 5", n)
	}
}

// If an overflowing name gets a resource, the limits of the resource start with the earlier passes of the name. Each
// later pass is counted once, in the views of the resource.
func TestLaterPassesOfANewResourceCountOnce(t *testing.T) {
	c, _ := crowded(t, 1)
	limit(t, c, qps("*", 10))
	exit(pass(c, "x", 2))
	limit(t, c, qps("*", 10), flying("x", 100)) // after a limit on the exact name, the next call registers its resource
	exit(pass(c, "x", 3))
	limit(t, c, flying("x", 100))
	limit(t, c, qps("x", 10))
	if n := len(pass(c, "x", 20)); n != 5 {
		t.Errorf("%d calls passed after 5, want 5 of 10", n)
	}
}

// The limiter of an overflowing name keeps the meter of an origin while the origin has calls in flight, or while a
// limit reads the passes of the origin. Otherwise, the limiter drops the meter.
func TestOverflowLimiterForgetsOrigins(t *testing.T) {
	c, _ := crowded(t, 1)
	limit(t, c, flying("*", 5))
	first := pass(c, "x", 1)
	for i := range 5 {
		exit(pass(c, "x", 1, collector.Origin(fmt.Sprint("o", i))))
	}
	if n := collector.OriginsOfName(c, "x"); n != 0 {
		t.Errorf("the limiter has meters for %d origins after their calls", n)
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
		time.Sleep(400 * ms) // until the bucket from which the batch had borrowed is open
		if n := len(pass(c, "a", 9)); n != 4 {
			t.Errorf("%d calls passed, want 4", n)
		}
	})
}
