package webconfig

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// maxGuesses is how many passwords of one host may wait for their comparison: more than a balancer has scrapers behind it when all of
// them come for the first time.
const maxGuesses = 64

var errTooManyGuesses = errors.New("too many passwords of this host are being compared")

// turns has the comparisons of a host wait for each other, and those of all hosts for half of the processors. So hosts take turns,
// each with one at a time.
type turns struct {
	all chan struct{} // holds those that compare

	mu    sync.Mutex // guards what follows
	hosts map[string]*host
}

// host is one that compares or waits.
type host struct {
	n   int           // how many
	own chan struct{} // holds the one whose turn it is
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), hosts: map[string]*host{}}
}

// wait waits for the turn of a host, and returns the function that ends it. The error is errTooManyGuesses at once, or the end of ctx.
func (t *turns) wait(ctx context.Context, name string) (end func(), err error) {
	t.mu.Lock()
	h := t.hosts[name]
	if h == nil {
		h = &host{own: make(chan struct{}, 1)}
		t.hosts[name] = h
	}
	if h.n == maxGuesses {
		t.mu.Unlock()
		return nil, errTooManyGuesses
	}
	h.n++
	t.mu.Unlock()
	held := make([]chan struct{}, 0, 2)
	end = func() {
		for _, c := range held {
			<-c
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if h.n--; h.n == 0 {
			delete(t.hosts, name)
		}
	}
	for _, c := range []chan struct{}{h.own, t.all} {
		select {
		case c <- struct{}{}:
			held = append(held, c)
		case <-ctx.Done():
			end()
			return nil, ctx.Err()
		}
	}
	return end, nil
}
