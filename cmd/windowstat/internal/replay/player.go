package replay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
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

// player repeats the calls, second by second, in the time of their log.
type player struct {
	stats   *collector.Collector
	clock   *Clock
	names   *names
	inbound bool                                                                  // calls are inbound
	done    func(start time.Time, active []*collector.Resource, most int64) error // called for each second with calls

	open   int64 // Unix time of the current or next second
	sealed int64 // of the last second in which idle resources were retired

	pending    pending
	inFlightOf map[int32]int64 // calls in flight, by name
	inFlight   int64           // all calls in flight
	most       int64           // the most at once in this second

	known  []known               // by id of the name
	active []*collector.Resource // of this second
	other  bool                  // collector.Other is among them
}

// known is the resource of a name in a second. In another second it may be another.
type known struct {
	*collector.Resource
	second int64
}

func newPlayer(c *collector.Collector, clock *Clock, names *names, open int64) *player {
	return &player{stats: c, clock: clock, names: names, open: open, sealed: open, inFlightOf: map[int32]int64{}}
}

// errFailed is the error of a call that failed.
var errFailed = errors.New("the status says that it failed")

// refused is the reason of blocked calls.
const refused = "status"

// A resource idle for retireAfter makes room for another. The player checks that every sealEvery seconds of the log.
const (
	retireAfter = 24 * time.Hour
	sealEvery   = 2 * 24 * 3600
)

// second plays a second: it begins the calls, in order, and ends those that end in it. In the seconds that were skipped before
// it no call began.
func (p *player) second(second int64, calls []call) error {
	if err := p.idle(second); err != nil {
		return err
	}
	p.open, p.most = second, p.inFlight
	p.active, p.other = p.active[:0], false
	p.clock.set(second * nanos)
	for name := range p.inFlightOf {
		p.mark(name)
	}
	for i := range calls {
		c := &calls[i]
		p.complete(c.at + 1)
		p.clock.set(c.at)
		p.begin(p.mark(c.name), c)
	}
	end := (second + 1) * nanos
	p.complete(end)
	p.clock.set(end)
	p.open = second + 1
	if len(p.active) == 0 {
		return nil
	}
	if err := p.done(time.Unix(second, 0).UTC(), p.active, p.most); err != nil {
		return err
	}
	if p.open-p.sealed >= sealEvery {
		p.sealed = p.open
		p.stats.Seal()
	}
	return nil
}

// idle plays the seconds before the given one in which calls are in flight.
func (p *player) idle(second int64) error {
	for p.inFlight > 0 && p.open < second {
		if err := p.second(p.open, nil); err != nil {
			return err
		}
	}
	p.open = second
	return nil
}

// finish plays until all calls have ended.
func (p *player) finish() error {
	for p.inFlight > 0 {
		if err := p.second(p.open, nil); err != nil {
			return err
		}
	}
	return nil
}

// mark returns the resource of a name, and marks it as active in this second.
func (p *player) mark(name int32) *collector.Resource {
	if n := len(p.names.list); n > len(p.known) {
		p.known = append(p.known, make([]known, n-len(p.known))...)
	}
	x := &p.known[name]
	if x.second == p.open {
		return x.Resource
	}
	x.Resource, x.second = p.stats.Resource(p.names.list[name]), p.open
	if x.Name() != collector.Other || !p.other {
		p.other = p.other || x.Name() == collector.Other
		p.active = append(p.active, x.Resource)
	}
	return x.Resource
}

// begin begins a call, or several equal ones.
func (p *player) begin(r *collector.Resource, c *call) {
	if c.outcome == blocked {
		p.stats.Block(context.Background(), p.names.list[c.name], refused, p.how(c)...)
		return
	}
	p.most = max(p.most, p.inFlight+1)
	plain := !p.inbound && c.n == 1 && c.clipped == 0 // nearly all calls are, unless a log is followed
	if plain && c.duration == unknown {
		e := r.Enter()
		e.ExitCode(outcomeError(c.outcome == failed), code(c.status))
		return
	}
	e := new(collector.Entry)
	if plain {
		*e = r.Enter()
	} else {
		_, e, _ = p.stats.Enter(context.Background(), p.names.list[c.name], p.how(c)...)
	}
	if c.duration == unknown {
		e.ExitCode(outcomeError(c.outcome == failed), code(c.status))
		return
	}
	p.pending.add(completion{at: c.at - c.clipped + c.duration, Entry: e, name: c.name, status: c.status, failed: c.outcome == failed})
	p.inFlightOf[c.name]++
	p.inFlight++
}

// how returns the options of a call.
func (p *player) how(c *call) []collector.Option {
	how := []collector.Option{collector.Admitted(), collector.Batch(int64(c.n)), collector.StartedAt(time.Unix(0, c.at-c.clipped))}
	if c.passed {
		how = append(how, collector.Passed())
	}
	if p.inbound {
		how = append(how, collector.Inbound())
	}
	return how
}

// complete ends the calls that end before a time.
func (p *player) complete(before int64) {
	for l, ok := p.pending.next(before); ok; l, ok = p.pending.next(before) {
		p.clock.set(l.at)
		l.ExitCode(outcomeError(l.failed), code(l.status))
		p.inFlight--
		if p.inFlightOf[l.name]--; p.inFlightOf[l.name] == 0 {
			delete(p.inFlightOf, l.name)
		}
	}
}

func outcomeError(failed bool) error {
	if failed {
		return errFailed
	}
	return nil
}

// Row is what one resource did in a second.
type Row struct {
	Resource string
	node.MetricNode
}

// rows returns the records of the second that starts at start.
func rows(c *collector.Collector, start time.Time, active []*collector.Resource, to []Row) ([]Row, error) {
	line := c.Timeline()
	line.At(line.Now()) // the second is over
	index, ok := line.Index(start)
	if !ok {
		return to, fmt.Errorf("second %d is not on the time line", start.Unix())
	}
	for _, r := range active {
		m, ok := r.View().Node().Second(index)
		if !ok {
			return to, fmt.Errorf("second %d of %q was forgotten", start.Unix(), r.Name())
		}
		to = append(to, Row{r.Name(), m})
	}
	return to, nil
}
