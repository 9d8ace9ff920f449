package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A habit describes the calls of a resource.
type habit struct {
	resource string
	calls    func(second int) int // number of calls that begin in a second of the run
	within   time.Duration        // calls begin within this time after the start of the second
	takes    time.Duration        // average duration of a call
	fails    float64              // share of calls with an error
}

var errFailed = errors.New("failed")

// habits have several kinds. Each kind is lost in a different way if only some of the seconds arrive.
func habits() []habit {
	steady := func(n int) func(int) int { return func(int) int { return n } }
	return []habit{
		{resource: "steady", calls: steady(20), within: time.Second, takes: 5 * time.Millisecond},
		{resource: "failing", calls: steady(10), within: time.Second, takes: 20 * time.Millisecond, fails: 0.3},
		{resource: "limited", calls: steady(25), within: time.Second, takes: time.Millisecond},
		{resource: "slow", calls: steady(2), within: time.Second, takes: 2500 * time.Millisecond},
		// A second with two hundred times as many calls as the others, all concurrent.
		{
			resource: "burst", within: 100 * time.Millisecond, takes: 3 * time.Millisecond,
			calls: func(second int) int {
				if second%17 == 11 {
					return 400 + second
				}
				return 2
			},
		},
		// No calls for half a minute.
		{
			resource: "idle", within: time.Second, takes: 10 * time.Millisecond,
			calls: func(second int) int {
				if second >= 10 && second < 45 {
					return 0
				}
				return 5
			},
		},
		// Calls only at the beginning.
		{
			resource: "once", within: time.Second, takes: 10 * time.Millisecond,
			calls: func(second int) int {
				if second > 0 {
					return 0
				}
				return 5
			},
		},
		// No calls until the exporter sends only the passes of the resource, and then another burst.
		{
			resource: "rare", within: 300 * time.Millisecond, takes: 10 * time.Millisecond,
			calls: func(second int) int {
				if second%68 > 0 {
					return 0
				}
				return 150 + second
			},
		},
		// A resource that did not exist when the servers began.
		{
			resource: "late", within: time.Second, takes: 10 * time.Millisecond,
			calls: func(second int) int {
				if second < 25 {
					return 0
				}
				return 3
			},
		},
	}
}

// load calls the resources for a number of seconds, and waits until the last call has ended.
func (s *service) load(ctx context.Context, seconds int) error {
	if err := s.stats.SetLimits([]collector.Limit{{Resource: "limited", Count: 15}}); err != nil {
		return err
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	begin := time.Now()
	for _, h := range habits() {
		calls.Go(func() {
			for second := range seconds {
				if !sleepUntil(ctx, begin.Add(time.Duration(second)*time.Second)) {
					return
				}
				for range h.calls(second) {
					calls.Go(func() { s.call(ctx, h) })
				}
			}
		})
	}
	return nil
}

// call makes one call at a random time.
func (s *service) call(ctx context.Context, h habit) {
	if !sleepUntil(ctx, time.Now().Add(rand.N(h.within))) {
		return
	}
	// The statistics count the error, so the test ignores it.
	_ = s.stats.Resource(h.resource).Do(func() error {
		time.Sleep(h.takes/2 + rand.N(h.takes))
		if rand.Float64() < h.fails {
			return errFailed
		}
		return nil
	})
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	select {
	case <-time.After(time.Until(at)):
		return true
	case <-ctx.Done():
		return false
	}
}
