package limiter

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Places bounds how many pages are computed at a time. The next place goes to the host that has the fewest, and there to who
// came first; so a host that asks much waits for itself. It must be made with [NewPlaces], and is safe for concurrent use.
type Places struct {
	queue Shares // bounds the waiting ones

	mu      sync.Mutex // guards what follows
	free    int
	held    map[string]int // by host
	waiting []*waiter      // who came first is first
}

// waiter waits for a place.
type waiter struct {
	host  string
	ready chan struct{} // closed when it has a place
}

// ErrBusy is the error for who cannot wait any longer.
var ErrBusy = errors.New("too many requests are being served")

// maxWaiting is how many may wait for a place.
const maxWaiting = 1000

// NewPlaces returns n free places.
func NewPlaces(n int) *Places {
	return &Places{free: n, held: map[string]int{}, queue: Shares{Max: maxWaiting}}
}

// Take waits for a place until ctx ends, and returns the function that leaves it; calling it again does nothing. The error is
// [ErrBusy], or the end of ctx if that was canceled.
func (p *Places) Take(ctx context.Context, host string) (leave func(), err error) {
	p.mu.Lock()
	if p.free > 0 {
		p.enter(host)
		p.mu.Unlock()
		return p.leaving(host), nil
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	x := &waiter{host, make(chan struct{})}
	give, ok := p.queue.Take(host, 1, func() error { end(ErrBusy); return nil }) // because others have waited less
	if !ok {
		p.mu.Unlock()
		return nil, ErrBusy
	}
	p.waiting = append(p.waiting, x)
	p.mu.Unlock()
	defer give()
	select {
	case <-x.ready:
		return p.leaving(host), nil
	case <-ctx.Done():
		if err = context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) {
			err = ErrBusy
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, x); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return nil, err
	}
	return p.leaving(host), nil // it got one meanwhile
}

// enter takes a free place. Holds mu.
func (p *Places) enter(host string) {
	p.free--
	p.held[host]++
}

// leaving returns the function that leaves a place.
func (p *Places) leaving(host string) func() {
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free++
		if p.held[host]--; p.held[host] == 0 {
			delete(p.held, host)
		}
		if len(p.waiting) == 0 {
			return
		}
		next := 0
		for i, x := range p.waiting {
			if p.held[x.host] < p.held[p.waiting[next].host] {
				next = i
			}
		}
		x := p.waiting[next]
		p.waiting = slices.Delete(p.waiting, next, next+1)
		p.enter(x.host)
		close(x.ready)
	})
}
