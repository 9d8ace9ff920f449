package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A count is the number of calls that passed and the number that were refused.
type count struct{ pass, block int }

// paced holds statistics whose clock moves only when the test moves it. The events of each second are therefore exactly
// known, and years can pass in a minute.
type paced struct {
	stats     *collector.Collector
	clock     *clock
	second    int64 // the open second, in Unix time
	resources []string
	// calls returns the calls of a resource, given by its number, in a second.
	calls func(resource int, second int64) count
	// takes returns the duration of a call in a second. If takes is nil, calls take no time. All calls of a second
	// together must take less than half a second.
	takes func(second int64, call int) time.Duration
	// If ticked is not nil, it receives the calls of each resource in each second.
	ticked func(resource int, second int64, c count)
}

// newPaced returns paced statistics whose clock begins at a time.
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

// middle returns the middle of a second, as far as possible from all other seconds.
func middle(second int64) time.Time { return time.Unix(second, int64(time.Second/2)) }

// tick makes all calls of the open second, and then opens the next second.
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

// live ticks once a second while more returns true.
func (p *paced) live(more func() bool) {
	next := time.Now()
	for more() {
		p.tick()
		next = next.Add(time.Second)
		time.Sleep(time.Until(next))
	}
}

// check compares the samples of a server with some labels with the calls, for the seconds from begin to end. It returns
// the number of samples.
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

// start runs live concurrently with the test, until the returned function is called or the test ends.
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
