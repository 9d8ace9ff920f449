// Package top shows what an endpoint of windowstat counts, second by second, in a terminal ([Run]) or as text ([Once]).
//
// It requests the last second from the per-second page, at the beginning the ten minutes before, and the seconds that it
// missed; of thousands of resources it keeps a minute only. It uses no cursor, so it takes nothing from Prometheus or
// VictoriaMetrics. All that comes from the endpoint is bounded, and cleaned before it reaches the terminal.
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
		u.targets = append(u.targets, newTarget(e))
	}
	answers := make(chan func(), len(endpoints)+1)
	var detailed time.Time // when the detail was asked for
	asking := key{}
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
			switch ev := ev.(type) {
			case *tcell.EventKey:
				if u.key(ev) {
					return nil
				}
			case *tcell.EventResize:
				screen.Sync()
			}
		case <-timer.C:
			timer.Reset(untilNext(time.Now()))
			for _, t := range u.targets {
				if t.asking {
					continue
				}
				t.asking = true
				all.Go(func() {
					answers <- guarded(func() func() {
						a := t.reader.read(ctx)
						return func() {
							t.asking = false
							u.take(t, a, time.Now())
						}
					})
				})
			}
		case take := <-answers:
			take()
		}
		if l, there := u.current(); u.opened && there && asking == (key{}) && (u.detail.of != l.key() || time.Since(detailed) > detailAge) {
			asking, detailed = l.key(), time.Now()
			read := readDetail(ctx, l)
			all.Go(func() {
				answers <- guarded(func() func() {
					d := read()
					return func() { asking, u.detail = key{}, d }
				})
			})
		}
		if len(events)+len(answers) == 0 {
			u.draw(screen, time.Now())
		}
	}
}

// detailAge is how long the limits and refusals of what is opened are shown until they are read again: the page that has them may be
// large.
const detailAge = 10 * time.Second

// late is how long after its end a second is requested, if the clocks agree. Otherwise it shows up later, by less than a
// second.
const late = 100 * time.Millisecond

// untilNext returns how long to wait for the next second.
func untilNext(now time.Time) time.Duration {
	return now.Truncate(time.Second).Add(time.Second + late).Sub(now)
}

// guarded calls read, which returns what is to be done with what it has read. If it panics, that is to be done by the goroutine
// that can restore the terminal.
func guarded(read func() func()) (take func()) {
	defer func() {
		if v := recover(); v != nil {
			text := fmt.Sprintf("%v\n%s", v, debug.Stack())
			take = func() { panic(text) }
		}
	}()
	return read()
}
