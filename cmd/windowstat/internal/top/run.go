package top

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"
)

// Run shows the endpoint on a screen, which must not be initialized yet, until the user quits or ctx ends. Then it restores
// the terminal, and leaves no goroutine. A failing endpoint is no error: Run keeps polling.
func Run(ctx context.Context, screen tcell.Screen, e *Endpoint, o Options) error {
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

	u := &ui{endpoint: e.String(), board: newBoard(), order: by, filter: o.Filter}
	r := &reader{endpoint: e, minute: every}
	answers := make(chan answer, 1)
	asking := false
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
			if !u.paused && !asking {
				asking = true
				all.Go(func() { answers <- r.guarded(ctx) })
			}
		case a := <-answers:
			asking = false
			if p, bad := a.err.(*panicked); bad { //nolint:errorlint // it is never wrapped
				panic(p.Error())
			}
			u.take(a, time.Now())
		}
		if len(events) == 0 {
			u.draw(screen, time.Now())
		}
	}
}

// late is how long after its end a second is requested, if the clocks agree. Otherwise it shows up later, by less than a
// second.
const late = 100 * time.Millisecond

// untilNext returns how long to wait for the next second.
func untilNext(now time.Time) time.Duration {
	return now.Truncate(time.Second).Add(time.Second + late).Sub(now)
}

// panicked is a panic of another goroutine; the one that can restore the terminal panics with it.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("%v\n%s", p.value, p.stack) }

// guarded calls read, and returns a panic as an error.
func (r *reader) guarded(ctx context.Context) (a answer) {
	defer func() {
		if v := recover(); v != nil {
			a = answer{err: &panicked{v, debug.Stack()}}
		}
	}()
	return r.read(ctx)
}
