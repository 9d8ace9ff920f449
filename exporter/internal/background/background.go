// Package background runs functions in goroutines until they are stopped.
package background

import (
	"context"
	"sync"
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
