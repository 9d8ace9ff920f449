package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A count is how many calls passed and how many were refused.
type count struct{ pass, block int }

// paced are statistics whose clock moves only when the test moves it. So what happens in which of their seconds is known
// exactly, and years could pass in a minute.
type paced struct {
	stats     *collector.Collector
	clock     *clock
	second    int64 // the one that is open, in Unix time
	resources []string
	// calls is what a resource, by its number, does in a second.
	calls func(resource int, second int64) count
	// takes is how long each call takes in a second, no time if it is nil. All together must take less than half a second.
	takes func(second int64, call int) time.Duration
	// ticked is told of each second what was done in it, if it is not nil.
	ticked func(resource int, second int64, c count)
}

// newPaced begins at a time.
func newPaced(t *testing.T, at time.Time, resources []string, o collector.Options) *paced {
	t.Helper()
	p := &paced{second: at.Unix(), resources: resources, clock: newClock(middle(at.Unix()))}
	o.Now = p.clock.now
	var err error
	if p.stats, err = collector.New(o); err != nil {
		t.Fatal(err)
	}
	return p
}

// middle is the middle of a second, as far as can be from all others.
func middle(second int64) time.Time { return time.Unix(second, int64(time.Second/2)) }

// tick has everything of the open second happen, and then opens the next.
func (p *paced) tick() {
	for i, name := range p.resources {
		c := p.calls(i, p.second)
		r := p.stats.Resource(name)
		for call := range c.pass {
			e := r.Enter()
			if p.takes != nil {
				p.clock.set(p.clock.now().Add(p.takes(p.second, call)))
			}
			e.Exit(nil)
		}
		for range c.block {
			r.Block("paced")
		}
		if p.ticked != nil {
			p.ticked(i, p.second, c)
		}
	}
	p.second++
	p.clock.set(middle(p.second))
}

// live ticks once a second for as long as more says.
func (p *paced) live(more func() bool) {
	next := time.Now()
	for more() {
		p.tick()
		next = next.Add(time.Second)
		time.Sleep(time.Until(next))
	}
}

// check compares what a server has under some labels of the seconds from begin to end with what was done in them. It returns
// how many samples that are.
func (p *paced) check(t *testing.T, s *server, labels string, begin, end int64, deadline time.Time) (n int) {
	t.Helper()
	for metric, of := range map[string]func(count) int{
		"windowstat_persecond_pass":  func(c count) int { return c.pass },
		"windowstat_persecond_block": func(c count) int { return c.block },
	} {
		want := values{}
		for i, resource := range p.resources {
			want[resource] = map[int64]float64{}
			for second := begin; second < end; second++ {
				want[resource][second] = float64(of(p.calls(i, second)))
			}
		}
		selector := metric + "{" + labels + "}"
		await(t, s, selector, end, deadline)
		n += checkSamples(t, s, selector+"[10m]", want, end)
	}
	return n
}

// start has it live beside the test, until the function that is returned is called, or the test ends.
func (p *paced) start(t *testing.T) (stop func()) {
	t.Helper()
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		p.live(func() bool { return ctx.Err() == nil })
	}()
	return func() { cancel(); <-ended }
}
