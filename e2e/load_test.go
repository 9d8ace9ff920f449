package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A habit is how a resource is called.
type habit struct {
	resource string
	calls    func(second int) int // how many begin in a second of the run
	within   time.Duration        // from its beginning
	takes    time.Duration        // how long a call takes, on average
	fails    float64              // share of calls with an error
}

var errFailed = errors.New("failed")

// habits are of several kinds, because each is lost in a way of its own when only a part of the seconds arrives.
func habits() []habit {
	steady := func(n int) func(int) int { return func(int) int { return n } }
	return []habit{
		{resource: "steady", calls: steady(20), within: time.Second, takes: 5 * time.Millisecond},
		{resource: "failing", calls: steady(10), within: time.Second, takes: 20 * time.Millisecond, fails: 0.3},
		{resource: "limited", calls: steady(25), within: time.Second, takes: time.Millisecond},
		{resource: "slow", calls: steady(2), within: time.Second, takes: 2500 * time.Millisecond},
		// A second in which two hundred times as many call as in the others, all at once.
		{
			resource: "burst", within: 100 * time.Millisecond, takes: 3 * time.Millisecond,
			calls: func(second int) int {
				if second%17 == 11 {
					return 400 + second
				}
				return 2
			},
		},
		// Nothing at all for half a minute.
		{
			resource: "idle", within: time.Second, takes: 10 * time.Millisecond,
			calls: func(second int) int {
				if second >= 10 && second < 45 {
					return 0
				}
				return 5
			},
		},
		// Called at the beginning, and never again.
		{
			resource: "once", within: time.Second, takes: 10 * time.Millisecond,
			calls: func(second int) int {
				if second > 0 {
					return 0
				}
				return 5
			},
		},
		// Nothing for so long that only its passes are sent, and then a burst again.
		{
			resource: "rare", within: 300 * time.Millisecond, takes: 10 * time.Millisecond,
			calls: func(second int) int {
				if second%68 > 0 {
					return 0
				}
				return 150 + second
			},
		},
		// A resource that nobody knew when the servers began.
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

// call calls once, at some moment.
func (s *service) call(ctx context.Context, h habit) {
	if !sleepUntil(ctx, time.Now().Add(rand.N(h.within))) {
		return
	}
	// What it returns is counted, and nothing else is asked of it.
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
