package collector_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A name that leaves a shared limiter starts with the passes of each origin there.
func TestANameKeepsThePassesOfItsOrigins(t *testing.T) {
	c, f := crowded(t, 1)
	limit(t, c, collector.Limit{Resource: "*", Origin: "web", Count: 5})
	exit(pass(c, "a", 1, collector.Origin("web")))
	f.add(4900 * ms)
	exit(pass(c, "x", 4, collector.Origin("web"))) // "a" is not idle yet, so "x" has no limiter of its own
	f.add(200 * ms)
	if n := len(pass(c, "x", 9, collector.Origin("web"))); n != 1 {
		t.Errorf("%d calls passed after 4, want 1 of 5", n)
	}
}

// A name that gets a resource brings the passes that it has then. Later passes count once, in the views of the
// resource.
func TestLaterPassesOfANewResourceCountOnce(t *testing.T) {
	c, _ := crowded(t, 1)
	limit(t, c, qps("*", 10))
	exit(pass(c, "x", 2))
	limit(t, c, qps("*", 10), flying("x", 100)) // a limit on the name registers its resource with the next call
	exit(pass(c, "x", 3))
	limit(t, c, flying("x", 100))
	limit(t, c, qps("x", 10))
	if n := len(pass(c, "x", 20)); n != 5 {
		t.Errorf("%d calls passed after 5, want 5 of 10", n)
	}
}

// The limiter of a name keeps no meter for an origin without calls in flight, unless a limit needs the passes.
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
		time.Sleep(400 * ms) // the bucket that the batch had borrowed from
		if n := len(pass(c, "a", 9)); n != 4 {
			t.Errorf("%d calls passed, want 4", n)
		}
	})
}
