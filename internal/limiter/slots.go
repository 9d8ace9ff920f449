// Package limiter caps three things over all clients together: concurrent computations (such as the rendering of
// pages), unread bytes, and streams. It shares each cap fairly between hosts.
//
// A page is rendered while its request holds a slot, and written after the slot was released, so no request waits for a
// slow reader. Package fairshare decides which host loses a share if a cap is reached.
package limiter

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// Slots limits the number of requests that are computed concurrently, for example the number of pages that are
// rendered. The next free slot goes to the host with the fewest slots, and to its oldest request, so the requests of a
// busy host wait for each other. Create it with [NewSlots]. It is safe for concurrent use.
type Slots struct {
	queue *Shares // limits the waiting requests

	mu   sync.Mutex // guards the fields below
	free int
	// all holds the waiting requests and the holders of slots. A waiting request has the amount 0, and the channel that
	// grants its slot. A holder has the amount -1, no channel, and a later rank. If there are waiting requests, the
	// first entry of the table is therefore the oldest request of the host with the fewest slots.
	all fairshare.Table[string, chan func()]
}

// ErrBusy is the error of a request that waited too long, or that the queue has no capacity for.
var ErrBusy = errors.New("too many requests are being served")

// maxWaiting is the capacity of the queue.
const maxWaiting = 1000

// NewSlots returns n free slots.
func NewSlots(n int) *Slots {
	return &Slots{free: n, queue: NewShares(maxWaiting, EvictNewest)}
}

// Acquire waits for a slot until ctx ends, and returns the function that releases it. Further calls of release do
// nothing. The error is [ErrBusy], or the cause of ctx if ctx was canceled.
func (p *Slots) Acquire(ctx context.Context, host string) (release func(), err error) {
	p.mu.Lock()
	if p.free > 0 {
		defer p.mu.Unlock()
		return p.grant(host), nil
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// Revoked for a request of another host.
	give, ok := p.queue.Take(host, 1, func() error { end(ErrBusy); return nil })
	if !ok {
		p.mu.Unlock()
		return nil, ErrBusy
	}
	defer give()
	x := p.all.Add(host, 0, make(chan func(), 1))
	p.mu.Unlock()
	select {
	case release = <-x.Value:
		return release, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.all.Remove(x) {
		return <-x.Value, nil // the slot was granted concurrently
	}
	if err = context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) {
		err = ErrBusy
	}
	return nil, err
}

// grant takes a free slot and returns the function that releases it. mu must be held.
func (p *Slots) grant(host string) (release func()) {
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
			next.Value <- p.grant(next.Host)
		}
	})
}

// Begin prepares the response to a request and reports whether the request may be served. It refuses a request with a
// body and closes its connection: no page needs a body, and net/http would wait for the rest of it before it writes the
// first byte of the response.
//
// Begin sets the write deadline to timeout, unless the WriteTimeout of the server is shorter. It overrides a deadline
// that an outer handler set.
func Begin(w http.ResponseWriter, r *http.Request, timeout time.Duration) bool {
	conn := http.NewResponseController(w) // its errors mean that there is no connection, for example in a test
	if r.ContentLength != 0 {
		_ = conn.SetReadDeadline(past)
		w.Header().Set("Connection", "close")
		http.Error(w, "this page accepts no request body", http.StatusBadRequest)
		return false
	}
	if s, _ := r.Context().Value(http.ServerContextKey).(*http.Server); s == nil || s.WriteTimeout <= 0 ||
		s.WriteTimeout > timeout {
		_ = conn.SetWriteDeadline(time.Now().Add(timeout)) // net/http resets it after the response
	}
	return true
}

// past is a deadline in the past.
var past = time.Unix(1, 0)

// Closing returns a function that aborts a response: the current write fails. The function must not be called after the
// handler has returned.
func Closing(w http.ResponseWriter) func() error {
	return func() error { return http.NewResponseController(w).SetWriteDeadline(past) }
}
