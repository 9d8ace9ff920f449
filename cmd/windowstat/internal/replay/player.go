package replay

import (
	"container/heap"

	"github.com/windowstat/windowstat/collector"
)

// player repeats the calls of a timeline, second by second: it begins them in order, and ends each when its time has come.
type player struct {
	counter
	open    int64 // Unix time of the current or next second
	pending pending
}

// counter is where calls are counted: the records of [Run], or the Collector of a [Follower].
type counter interface {
	block(c *call)
	// begin returns what ends the call, if the counter needs that.
	begin(c *call) *collector.Entry
	end(x completion)
	// over is called at the end of each second in which there was a call.
	over(second int64) error
}

// completion is the end of a call that has begun.
type completion struct {
	call
	at    int64 // when it ends, Unix nanoseconds
	entry *collector.Entry
}

// second plays a second. In the seconds that were skipped before it no call began.
func (p *player) second(second int64, calls []call) error {
	if err := p.idle(second); err != nil {
		return err
	}
	for i := range calls {
		c := &calls[i]
		p.complete(c.at + 1)
		if c.outcome == blocked {
			p.block(c)
			continue
		}
		x := completion{call: *c, entry: p.begin(c)}
		if c.duration == unknown {
			x.at = c.at
			p.end(x)
			continue
		}
		x.at = c.at - c.clipped + c.duration
		heap.Push(&p.pending, x)
	}
	p.open = second + 1
	p.complete(p.open * nanos)
	return p.over(second)
}

// idle plays the seconds before the given one in which calls are in flight.
func (p *player) idle(second int64) error {
	for len(p.pending) > 0 && p.open < second {
		if err := p.second(p.open, nil); err != nil {
			return err
		}
	}
	p.open = second
	return nil
}

// finish plays until all calls have ended.
func (p *player) finish() error {
	for len(p.pending) > 0 {
		if err := p.second(p.open, nil); err != nil {
			return err
		}
	}
	return nil
}

// complete ends the calls that end before a time.
func (p *player) complete(before int64) {
	for len(p.pending) > 0 && p.pending[0].at < before {
		p.end(heap.Pop(&p.pending).(completion))
	}
}

// pending is a heap of the calls in flight, the next to end first.
type pending []completion

func (p pending) Len() int           { return len(p) }
func (p pending) Less(i, j int) bool { return p[i].at < p[j].at }
func (p pending) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pending) Push(x any)        { *p = append(*p, x.(completion)) }
func (p *pending) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}
