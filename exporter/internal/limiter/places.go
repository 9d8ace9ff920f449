// Package limiter bounds what clients can hold of a server: places in which pages are computed, what is written to slow
// readers, streams. A page is computed in a place and written without one, so nobody waits for a slow reader. What is bounded
// is bounded in all; package fairshare decides which host gives way when it is used up.
package limiter

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// Places bounds how many pages are computed at a time. The next place goes to the host that has the fewest, and of its requests to
// the oldest, so the many requests of one host queue behind each other. It must be made with [NewPlaces], and is safe for
// concurrent use.
type Places struct {
	queue *Shares // bounds the waiting ones

	mu   sync.Mutex // guards what follows
	free int
	// all are the requests that wait, with the channel that one gets its place by, and after them those that have a place, each with
	// the amount -1. So the one that would give way first is the next: it waits, and its host has the fewest places.
	all fairshare.Table[string, chan func()]
}

// ErrBusy is the error of a request that cannot wait any longer.
var ErrBusy = errors.New("too many requests are being served")

// maxWaiting is how many requests may wait for a place.
const maxWaiting = 1000

// NewPlaces returns n free places.
func NewPlaces(n int) *Places { return &Places{free: n, queue: NewSeats(maxWaiting)} }

// Take waits for a place until ctx ends, and returns the function that leaves it; calling it again does nothing. The error is
// [ErrBusy], or the end of ctx if that was canceled.
func (p *Places) Take(ctx context.Context, host string) (leave func(), err error) {
	p.mu.Lock()
	if p.free > 0 {
		defer p.mu.Unlock()
		return p.enter(host), nil
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	give, ok := p.queue.Take(host, 1, func() error { end(ErrBusy); return nil }) // because others have waited less
	if !ok {
		p.mu.Unlock()
		return nil, ErrBusy
	}
	defer give()
	x := p.all.Add(host, 0, make(chan func(), 1))
	p.mu.Unlock()
	select {
	case leave = <-x.Value:
		return leave, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.all.Remove(x) {
		return <-x.Value, nil // it got one meanwhile
	}
	if err = context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) {
		err = ErrBusy
	}
	return nil, err
}

// enter takes a free place, and returns the function that leaves it. Holds mu.
func (p *Places) enter(host string) (leave func()) {
	p.free--
	x := p.all.Add(host, -1, nil)
	p.all.Rank(x, 1)
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free++
		p.all.Remove(x)
		if next := p.all.First(); next != nil && next.Value != nil {
			p.all.Remove(next)
			next.Value <- p.enter(next.Host)
		}
	})
}

// Begin prepares for the response to a request without a body. A page has no use for one, and net/http would wait for the
// rest of it before it writes the first byte: a request with a body is refused, and its connection closed. It reports whether
// the request is to be served.
//
// The response may take until timeout has passed, or as long as the server's WriteTimeout allows if that is less. A handler
// around this one that moved the write deadline is not seen.
func Begin(w http.ResponseWriter, r *http.Request, timeout time.Duration) bool {
	conn := http.NewResponseController(w) // its errors mean that there is no connection, as in a test
	if r.ContentLength != 0 {
		_ = conn.SetReadDeadline(past)
		w.Header().Set("Connection", "close")
		http.Error(w, "a request of this page has no body", http.StatusBadRequest)
		return false
	}
	if s, _ := r.Context().Value(http.ServerContextKey).(*http.Server); s == nil || s.WriteTimeout <= 0 || s.WriteTimeout > timeout {
		_ = conn.SetWriteDeadline(time.Now().Add(timeout)) // net/http takes it back after the response
	}
	return true
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// Closing returns a function that breaks off a response: what is being written fails. It must not be called after the handler
// has returned.
func Closing(w http.ResponseWriter) func() error {
	return func() error { return http.NewResponseController(w).SetWriteDeadline(past) }
}
