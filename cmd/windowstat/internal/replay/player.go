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

// Clock is the time of a replay, for collector.Options.Now. It is safe for concurrent use.
type Clock struct{ at atomic.Int64 }

// Now is the time of the replay.
func (c *Clock) Now() time.Time { return time.Unix(0, c.at.Load()) }

// set moves the clock, which never goes back.
func (c *Clock) set(at int64) {
	if at > c.at.Load() {
		c.at.Store(at)
	}
}

// player makes the calls again, second by second, in the time of their log.
type player struct {
	stats   *collector.Collector
	clock   *Clock
	names   *[]string
	inbound bool                                                                  // calls are to be inbound, for whoever looks at the Collector
	done    func(start time.Time, active []*collector.Resource, most int64) error // called for each second with calls

	open   int64 // Unix time of the second that is next, or being played
	sealed int64 // of the last one in which idle resources were looked for

	flight flight
	flying map[int32]int64 // calls in flight, by name
	inAir  int64           // all of them
	most   int64           // at once, in this second

	known  []known               // by name
	active []*collector.Resource // of this second
	other  bool                  // the one for those beyond the limit is among them
}

// known is the resource that has a name in a second. In another one it may be another.
type known struct {
	*collector.Resource
	second int64
}

func newPlayer(c *collector.Collector, clock *Clock, names *[]string, open int64) *player {
	return &player{stats: c, clock: clock, names: names, open: open, sealed: open, flying: map[int32]int64{}}
}

// errFailed is the error of a call that failed.
var errFailed = errors.New("the status says that it failed")

// refused is the reason of a block.
const refused = "status"

// A resource that is idle for retireAfter makes room for another; that is looked into every so many seconds of the log.
const (
	retireAfter = 24 * time.Hour
	sealEvery   = 2 * 24 * 3600
)

// second makes the calls of a second, in order, and ends those that end in it. The seconds before it that were not played
// have no calls that begin.
func (p *player) second(second int64, calls []call) error {
	if err := p.idle(second); err != nil {
		return err
	}
	p.open, p.most = second, p.inAir
	p.active, p.other = p.active[:0], false
	p.clock.set(second * nanos)
	for name := range p.flying {
		p.mark(name)
	}
	for i := range calls {
		c := &calls[i]
		p.land(c.at + 1)
		p.clock.set(c.at)
		p.begin(p.mark(c.name), c)
	}
	end := (second + 1) * nanos
	p.land(end)
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

// idle plays the seconds up to this one in which calls are in flight.
func (p *player) idle(second int64) error {
	for p.inAir > 0 && p.open < second {
		if err := p.second(p.open, nil); err != nil {
			return err
		}
	}
	p.open = second
	return nil
}

// finish plays on until all calls have ended.
func (p *player) finish() error {
	for p.inAir > 0 {
		if err := p.second(p.open, nil); err != nil {
			return err
		}
	}
	return nil
}

// mark finds the resource of a name, which is active in this second.
func (p *player) mark(name int32) *collector.Resource {
	if n := len(*p.names); n > len(p.known) {
		p.known = append(p.known, make([]known, n-len(p.known))...)
	}
	x := &p.known[name]
	if x.second == p.open {
		return x.Resource
	}
	x.Resource, x.second = p.stats.Resource((*p.names)[name]), p.open
	if x.Name() != collector.Other || !p.other {
		p.other = p.other || x.Name() == collector.Other
		p.active = append(p.active, x.Resource)
	}
	return x.Resource
}

// begin makes a call, or several that are alike.
func (p *player) begin(r *collector.Resource, c *call) {
	if c.outcome == blocked {
		p.stats.Block(context.Background(), (*p.names)[c.name], refused, p.how(c)...)
		return
	}
	p.most = max(p.most, p.inAir+1)
	plain := !p.inbound && c.n == 1 && c.early == 0 // nearly all calls of logs that are replayed at once are
	if plain && c.took == unknown {
		e := r.Enter()
		e.Exit(outcomeError(c.outcome == failed))
		return
	}
	e := new(collector.Entry)
	if plain {
		*e = r.Enter()
	} else {
		_, e, _ = p.stats.Enter(context.Background(), (*p.names)[c.name], p.how(c)...)
	}
	if c.took == unknown {
		e.Exit(outcomeError(c.outcome == failed))
		return
	}
	p.flight.add(landing{at: c.at - c.early + c.took, Entry: e, name: c.name, failed: c.outcome == failed})
	p.flying[c.name]++
	p.inAir++
}

// how says what is special about a call.
func (p *player) how(c *call) []collector.Option {
	how := []collector.Option{collector.Admitted(), collector.Batch(int64(c.n)), collector.StartedAt(time.Unix(0, c.at-c.early))}
	if c.passed {
		how = append(how, collector.Passed())
	}
	if p.inbound {
		how = append(how, collector.Inbound())
	}
	return how
}

// land ends the calls that end before this time.
func (p *player) land(before int64) {
	for l, ok := p.flight.next(before); ok; l, ok = p.flight.next(before) {
		p.clock.set(l.at)
		l.Exit(outcomeError(l.failed))
		p.inAir--
		if p.flying[l.name]--; p.flying[l.name] == 0 {
			delete(p.flying, l.name)
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

// rows reads the records of the second that starts at start.
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
