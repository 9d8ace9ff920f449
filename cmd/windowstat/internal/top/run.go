// Package top shows what an endpoint of windowstat counts, second by second, in a terminal ([Run]) or as text ([Once]).
//
// It requests the last second from the per-second page, at the beginning the ten minutes before, and the seconds that it
// missed; of ten thousand resources it keeps a minute only. It uses no cursor, so it takes nothing from Prometheus or
// VictoriaMetrics. What the per-second page does not have of a resource, such as its limits and origins, it requests from the live page
// beside it while that is selected. All that comes from the endpoint is bounded, and cleaned before it reaches the terminal.
package top

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"
)

// Run shows endpoints, of which there is one at least, on a screen, which must not be initialized yet, until the user quits or ctx
// ends. Then it restores the terminal, and leaves no goroutine. A failing endpoint is no error: Run keeps polling.
func Run(ctx context.Context, screen tcell.Screen, endpoints []*Endpoint, o Options) error {
	by, err := o.order()
	if err != nil {
		return err
	}
	if err := screen.Init(); err != nil {
		return fmt.Errorf("the terminal cannot be used: %w", err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer screen.Fini() // first of all, even on a panic
	events := make(chan tcell.Event, 100)
	all.Go(func() { screen.ChannelEvents(events, ctx.Done()) })

	u := &ui{order: by, filter: o.Filter}
	for _, e := range endpoints {
		u.targets = append(u.targets, newTarget(e, maxKept))
	}
	answers := make(chan func(), len(endpoints))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev, open := <-events:
			if !open {
				return nil
			}
			if k, is := ev.(*tcell.EventKey); is && u.key(k) {
				return nil
			}
		case <-timer.C:
			now := time.Now()
			timer.Reset(now.Truncate(time.Second).Add(time.Second + late).Sub(now))
			selected := u.selected.name
			for _, t := range u.targets {
				if !t.asking {
					t.asking = true
					all.Go(func() { answers <- poll(ctx, t, selected) })
				}
			}
		case take := <-answers:
			take()
		}
		if len(events)+len(answers) == 0 {
			u.draw(screen, time.Now())
		}
	}
}

// late is how long after its end a second is requested, if the clocks agree. Otherwise it shows up later, by less than a
// second.
const late = 100 * time.Millisecond

// poll reads a target, and returns what is to be done with the answer. If it panics, that is to be done by the goroutine that can
// restore the terminal.
func poll(ctx context.Context, t *target, selected string) (take func()) {
	defer func() {
		if v := recover(); v != nil {
			text := fmt.Sprintf("%v\n%s", v, debug.Stack())
			take = func() { panic(text) }
		}
	}()
	a := t.reader.read(ctx, selected)
	return func() {
		t.asking = false
		t.take(a, time.Now())
	}
}
