package exporter

import (
	"context"
	"sync"
)

// Start calls run in a goroutine of its own, with a context that the function returned ends. That function waits until
// run has returned, and returns its error; it may be called several times. It is for the Run methods of the ways out:
//
//	stop := exporter.Start(log.Run)
//	defer stop()
func Start(run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}
