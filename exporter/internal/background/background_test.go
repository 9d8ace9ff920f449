package background

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// A suspension between the two clock readings of a sleep does not lengthen the sleep. EverySecond calls its function
// within a second or two, for each combination of clocks that continue during the suspension.
func TestEverySecondAfterSuspension(t *testing.T) {
	for name, jump := range map[string]struct{ mono, wall time.Duration }{
		"both clocks":         {11 * time.Minute, 11 * time.Minute},
		"the monotonic clock": {11 * time.Minute, 0},
		"the wall clock":      {0, 11 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var mono, wall atomic.Int64 // nanoseconds
				var suspend atomic.Bool
				var line *leap.Timeline
				line = leap.NewTimeline(leap.Clock{
					Mono: func() time.Duration {
						read := time.Since(began) + time.Duration(mono.Load())
						if suspend.CompareAndSwap(true, false) {
							mono.Add(int64(jump.mono))
							wall.Add(int64(jump.wall))
							line.At(line.Now()) // simulates another goroutine that opens the second
						}
						return read
					},
					Wall: func() time.Time { return time.Now().Add(time.Duration(wall.Load())).Round(0) },
				})
				ctx, cancel := context.WithCancel(t.Context())
				calls := 0
				var latest time.Time
				ended := make(chan error)
				go func() {
					ended <- EverySecond(ctx, line, func() error {
						if now := time.Now(); calls > 0 && now.Sub(latest) > 2*time.Second {
							t.Errorf("call %d is %v after the previous one", calls, now.Sub(latest))
						}
						calls, latest = calls+1, time.Now()
						suspend.Store(calls == 3 || calls == 6)
						return nil
					})
				}()
				time.Sleep(20 * time.Second)
				suspend.Store(true) // during the last sleep
				cancel()
				stop := time.Now()
				if err := <-ended; err != nil || time.Since(stop) > 2*time.Second {
					t.Errorf("%v after %v", err, time.Since(stop))
				}
				if calls < 18 {
					t.Errorf("%d calls in 20 seconds", calls)
				}
			})
		})
	}
}
