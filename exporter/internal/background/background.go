// Package background runs functions in goroutines until they are stopped, and waits until then.
//
// Constructors of the ways out start nothing: Run blocks, and Start is Run in a goroutine of this package.
package background

import (
	"context"
	"sync"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Start runs run in a new goroutine. The returned stop cancels its context, waits for it, and returns its error; it may be
// called several times.
func Start(run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// EverySecond calls f now and whenever a second of the line has ended, until ctx ends. Then it waits for the open second, at most
// about a second, calls f once more, and returns what that returns.
func EverySecond(ctx context.Context, line *leap.Timeline, f func() error) error {
	left := func() time.Duration {
		now := line.Now()
		return line.At(now).End.Sub(now)
	}
	for wait := time.Duration(0); Sleep(ctx, wait); wait = left() {
		_ = f() // which reports its errors by itself
	}
	time.Sleep(left())
	return f()
}

// Sleep waits, and reports false if ctx ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
