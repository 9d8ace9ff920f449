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

// Start calls run in a new goroutine. The returned function stop cancels the context of run, waits until run returns,
// and returns the error of run. Later calls of stop return the same error. Several goroutines can call stop.
func Start(run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// EverySecond calls f immediately and at the end of each second of the line, until ctx ends. EverySecond then waits for
// the end of the open second, so that f can export this second, too. The last call of f provides the returned error.
// Errors of earlier calls are ignored: f must report them.
func EverySecond(ctx context.Context, line *leap.Timeline, f func() error) error {
	for wait := time.Duration(0); Sleep(ctx, wait); _, wait = line.Current() {
		_ = f()
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
