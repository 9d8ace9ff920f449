package replay

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Clock is the clock of a replay, for collector.Options.Now. It is safe for concurrent use.
type Clock struct{ at atomic.Int64 }

// Now returns the time of the replay.
func (c *Clock) Now() time.Time { return time.Unix(0, c.at.Load()) }

// set moves the clock forward, never back.
func (c *Clock) set(at int64) {
	if at > c.at.Load() {
		c.at.Store(at)
	}
}

// served is the counter of a [Follower]: a Collector, whose time is that of the replay. Each call enters and leaves as that of a service does,
// so whatever takes statistics out of a service takes them out of its log.
type served struct {
	*collector.Collector
	clock *Clock
	names *names
	ended func() // called after each second
}

// errFailed is the error of a call that failed.
var errFailed = errors.New("the status says that it failed")

// refused is the reason of blocked calls.
const refused = "status"

// block counts a call that did not pass, at its time.
func (s *served) block(c *call) {
	s.clock.set(c.at)
	s.Block(context.Background(), s.names.list[c.name], refused, how(c)...)
}

// begin has a call enter at its time. It passes whatever limits there are: it did.
func (s *served) begin(c *call) *collector.Entry {
	s.clock.set(c.at)
	_, e, _ := s.Enter(context.Background(), s.names.list[c.name], how(c)...)
	return &e
}

// end has a call leave at its time, with the code of its status.
func (s *served) end(x completion) {
	s.clock.set(x.at)
	var err error
	if x.outcome == failed {
		err = errFailed
	}
	var code collector.Code // none if the line has none
	if x.status != 0 {
		code = collector.HTTPStatus(int(x.status))
	}
	x.entry.ExitCode(err, code)
}

// over ends a second, so that the Collector seals it and every way out can have it.
func (s *served) over(second int64) error {
	s.clock.set((second + 1) * nanos)
	s.ended()
	return nil
}

// how returns the options of a call.
func how(c *call) []collector.CallOption {
	options := []collector.CallOption{
		collector.Inbound(), collector.Admitted(), collector.Batch(int64(c.n)), collector.StartedAt(time.Unix(0, c.at-c.clipped)),
	}
	if c.passed {
		options = append(options, collector.Passed())
	}
	return options
}
