package prom

import (
	"context"
	"sync"

	"github.com/windowstat/windowstat/exporter/internal/limiter"
)

// shared makes requests that wait for the same page share one that had not been begun when they came: none sees an older state
// than it would alone, and a flood of requests costs a page at a time. The zero value is ready.
type shared struct {
	mu      sync.Mutex
	waiting map[string]*sharing // by what is asked for; not begun
}

// sharing is a page that some wait for.
type sharing struct {
	users int           // guarded by shared.mu
	done  chan struct{} // closed when what follows is known
	made  bool          // or who was to make it has given up
	*content
	err error
}

// get returns the page of a key, from make in a place, or from another request's. A context that ends is [limiter.ErrBusy].
func (s *shared) get(ctx context.Context, key string, place func() (leave func(), err error), make func() (*content, error)) (*content, error) {
	for {
		x, first := s.join(key)
		if first {
			return s.make(key, x, place, make)
		}
		select {
		case <-x.done:
			if x.made {
				return x.content, x.err
			}
		case <-ctx.Done():
			return nil, limiter.ErrBusy // its part of the content is left to the garbage collector
		}
	}
}

// join adds a request to those that wait, and reports whether it is the first one, which makes the page.
func (s *shared) join(key string) (x *sharing, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x = s.waiting[key]; x == nil {
		if s.waiting == nil {
			s.waiting = map[string]*sharing{}
		}
		x, first = &sharing{done: make(chan struct{})}, true
		s.waiting[key] = x
	}
	x.users++
	return x, first
}

// make makes a page for all that wait for it.
func (s *shared) make(key string, x *sharing, place func() (func(), error), make func() (*content, error)) (*content, error) {
	defer close(x.done)
	leave, err := place()
	s.mu.Lock()
	delete(s.waiting, key) // who comes from now on gets another page
	users := x.users
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer leave()
	x.content, x.err = make()
	if x.made = true; x.err == nil {
		x.content.users.Store(int32(users))
	}
	return x.content, x.err
}
