package timeline

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Clock is the clock of a timeline, for collector.Options.Now. One goroutine may call Set while others call Now.
type Clock struct{ at atomic.Int64 }

// Now returns the time of the timeline.
func (c *Clock) Now() time.Time { return time.Unix(0, c.at.Load()) }

// Set moves the clock forward, never back, to Unix nanoseconds.
func (c *Clock) Set(at int64) {
	if at > c.at.Load() {
		c.at.Store(at)
	}
}

// Collected is a Counter that records calls in a Collector, whose clock is the Clock. Each call enters and exits as in
// a service, so every exporter works for a log or for spans, too.
type Collected struct {
	*collector.Collector
	Clock *Clock
	// Resource returns the name of a resource, and the options of its calls.
	Resource func(name int32) (string, []collector.CallOption)
	// Ended is called after each second.
	Ended func()
}

// errFailed is the error of a call that failed.
var errFailed = errors.New("failed according to the status")

// refused is the reason of blocked calls.
const refused = "status"

// Block implements Counter.
func (s *Collected) Block(c *Call) {
	s.Clock.Set(c.At)
	name, options := s.how(c)
	s.Collector.Block(context.Background(), name, refused, options...)
}

// Begin implements Counter. The call passes regardless of limits, because it passed in its service.
func (s *Collected) Begin(c *Call) *collector.Entry {
	s.Clock.Set(c.At)
	name, options := s.how(c)
	_, e, _ := s.Enter(context.Background(), name, options...)
	return &e
}

// End implements Counter.
func (s *Collected) End(x Completion) {
	s.Clock.Set(x.Ended)
	var err error
	if x.Outcome == Failed {
		err = errFailed
	}
	x.Entry.ExitCode(err, x.code())
}

// Over implements Counter. The Collector then seals the second, so exporters can send it.
func (s *Collected) Over(second int64) error {
	s.Clock.Set((second + 1) * Nanos)
	s.Ended()
	return nil
}

// how returns the resource of a call and the options of the call.
func (s *Collected) how(c *Call) (string, []collector.CallOption) {
	name, common := s.Resource(c.Name)
	options := make([]collector.CallOption, 0, 8)
	options = append(append(options, common...),
		collector.Admitted(), collector.Batch(int64(c.N)), collector.StartedAt(time.Unix(0, c.At-c.Clipped)))
	if c.Passed {
		options = append(options, collector.Passed())
	}
	return name, options
}
