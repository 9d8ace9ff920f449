package timeline

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Clock is the clock of a timeline, for collector.Options.Now. It is safe for concurrent use.
type Clock struct{ at atomic.Int64 }

// Now returns the time of the timeline.
func (c *Clock) Now() time.Time { return time.Unix(0, c.at.Load()) }

// Set moves the clock forward, never back, to Unix nanoseconds.
func (c *Clock) Set(at int64) {
	if at > c.at.Load() {
		c.at.Store(at)
	}
}

// Collected is the Counter of calls that are served: a Collector, whose time is that of the Clock. Each call enters and leaves as that of a
// service does, so whatever takes statistics out of a service takes them out of its log or its spans.
type Collected struct {
	*collector.Collector
	Clock *Clock
	// Resource tells the name of a resource, and the options of its calls.
	Resource func(name int32) (string, []collector.CallOption)
	// Ended is called after each second.
	Ended func()
}

// errFailed is the error of a call that failed.
var errFailed = errors.New("the status says that it failed")

// refused is the reason of blocked calls.
const refused = "status"

// Block counts a call that did not pass, at its time.
func (s *Collected) Block(c *Call) {
	s.Clock.Set(c.At)
	name, options := s.how(c)
	s.Collector.Block(context.Background(), name, refused, options...)
}

// Begin has a call enter at its time. It passes whatever limits there are: it did.
func (s *Collected) Begin(c *Call) *collector.Entry {
	s.Clock.Set(c.At)
	name, options := s.how(c)
	_, e, _ := s.Enter(context.Background(), name, options...)
	return &e
}

// End has a call leave at its time, with the code of its status.
func (s *Collected) End(x Completion) {
	s.Clock.Set(x.Ended)
	var err error
	if x.Outcome == Failed {
		err = errFailed
	}
	x.Entry.ExitCode(err, x.code())
}

// Over ends a second, so that the Collector seals it and every way out can have it.
func (s *Collected) Over(second int64) error {
	s.Clock.Set((second + 1) * Nanos)
	s.Ended()
	return nil
}

// how returns the resource of a call and its options.
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
