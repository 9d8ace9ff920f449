// Package background runs functions in goroutines until they are stopped, and sleeps until a context ends.
//
// Constructors of the exporters start no goroutine: Run blocks, and Start calls Run in a goroutine of this package.
package background

import (
	"context"
	"sync"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Start calls run in a new goroutine. Stop cancels its context, waits for it, and returns its error. It may be called
// several times.
func Start(run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// EverySecond calls f immediately and at the end of each second of the line, until ctx ends. It then waits for the end
// of the open second, calls f once more, and returns the result of that call.
func EverySecond(ctx context.Context, line *leap.Timeline, f func() error) error {
	for wait := time.Duration(0); Sleep(ctx, wait); _, wait = line.Current() {
		_ = f() // f reports its errors
	}
	_, left := line.Current()
	time.Sleep(left)
	return f()
}

// Sleep waits for d and reports true, or reports false as soon as ctx ends.
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
