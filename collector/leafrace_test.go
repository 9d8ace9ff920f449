package collector_test

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// A View never shows less than was counted, also while calls make new leaves: the views have a leaf before a call can find it.
func TestViewsHaveALeafBeforeCallsReachIt(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for range 20 {
		c, err := collector.New(collector.Options{MaxOrigins: 1000})
		if err != nil {
			t.Fatal(err)
		}
		view := c.Resource("r").View()
		var counted atomic.Int64
		var calls, reader sync.WaitGroup
		var done atomic.Bool
		for range 4 { // the same origins at the same time: most calls meet a leaf that another goroutine has just made
			calls.Go(func() {
				for i := range 500 {
					c.Block(t.Context(), "r", "test", collector.Origin(strconv.Itoa(i)))
					counted.Add(1)
					if i%8 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		reader.Go(func() {
			for !done.Load() {
				least := counted.Load()
				if n := view.Snapshot(nil).Total.Block; n < least {
					t.Errorf("the view has %d calls, and %d were counted before", n, least)
					return
				}
			}
		})
		calls.Wait()
		done.Store(true)
		reader.Wait()
		if t.Failed() {
			return
		}
	}
}

// A resource is retired only after it has been idle for RetireAfter in whole seconds, wherever it begins between two sweeps.
func TestResourceIsNotRetiredTooEarly(t *testing.T) {
	const after = 62 * time.Second
	earliest := time.Hour
	for phase := range 12 {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		c, err := collector.New(collector.Options{
			Now: func() time.Time { return now }, RetireAfter: after, Windows: node.Options{History: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		tick := func() {
			now = now.Add(time.Second)
			c.Seal()
		}
		for range phase {
			tick()
		}
		c.Resource("young") // it has no leaf, and so only its own age counts
		begin := now
		for c.Health().Retired == 0 && now.Sub(begin) < time.Hour {
			tick()
		}
		earliest = min(earliest, now.Sub(begin))
	}
	if earliest != after+time.Second {
		t.Errorf("a resource is retired after %v, want %v at the earliest", earliest, after+time.Second)
	}
}
