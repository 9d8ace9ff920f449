package exporter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
)

// part is what runs until its context ends, and then deals with the second that was open.
type part interface {
	Run(context.Context) error
}

var errRan = errors.New("exporter: Run, Start or Serve was called before; an Exporter runs once")

// Run samples, writes, pushes and follows the limits until ctx ends; it starts nothing that outlives it, and runs once. Then
// it waits for calls in flight, see [Options].Drain, and for the end of the second, at most about a second; it writes and
// sends that second, and closes the log. The error says what could not be written or sent then.
func (x *Exporter) Run(ctx context.Context) error {
	if x.ran.Swap(true) {
		return errRan
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	errs := make([]error, len(x.parts))
	var all sync.WaitGroup
	for i, p := range x.parts {
		all.Go(func() { errs[i] = p.Run(running) })
	}
	x.ready.Store(ctx.Err() == nil)
	<-ctx.Done()
	x.ready.Store(false)
	x.drain()
	cancel() // all of them wait for the same second
	all.Wait()
	x.Seconds.Save(context.WithoutCancel(ctx))
	return errors.Join(errs...)
}

// drain waits for the calls in flight: their completions belong into the last second. It looks after a moment, in which a server
// that the same context ends may still have begun some.
func (x *Exporter) drain() {
	for end := time.Now().Add(x.options.Drain); time.Now().Before(end); {
		time.Sleep(drainPoll)
		if x.inFlight() == 0 {
			return
		}
	}
}

// Start is Run in a goroutine. stop ends it, waits for it and returns its error; it may be called several times.
func (x *Exporter) Start() (stop func() error) { return background.Start(x.Run) }
