// Package limiter caps three things over all clients together: concurrent computations (such as the rendering of
// pages), response bytes that clients have not read yet, and streams. It shares each cap fairly between hosts.
//
// A page is rendered while its request holds a slot, and written after the slot was released, so no request waits for a
// client that reads slowly. Package fairshare decides which host loses a share if a cap is reached.
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
// rendered. The next free slot goes to the oldest request of the host with the fewest slots, so the requests of a busy
// host wait for each other. Create Slots with [NewSlots]. It is safe for concurrent use.
type Slots struct {
	queue *Shares // limits the waiting requests

	mu   sync.Mutex // guards the fields below
	free int
	// all holds the waiting requests and the holders of slots. A waiting request has the amount 0, and a channel that
	// receives the release function of its slot. A holder has the amount -1, no channel, and a later rank than waiting
	// requests. If there are waiting requests, the first entry of the table is therefore the oldest request of the host
	// with the fewest slots.
	all fairshare.Table[string, chan func()]
}

// ErrBusy is the error of a request that has waited too long for a slot, or that has no place in the queue.
var ErrBusy = errors.New("too many requests are being served")

// maxWaiting is the capacity of the queue.
const maxWaiting = 1000

// NewSlots returns Slots with n free slots.
func NewSlots(n int) *Slots {
	return &Slots{free: n, queue: NewShares(maxWaiting, EvictNewest)}
}

// Acquire waits for a slot for a request of the host until ctx ends. It returns the function release, which frees the
// slot. Further calls of release do nothing. The error is [ErrBusy] if the queue is full or the deadline of ctx has
// passed, or the cause of ctx if ctx was canceled.
func (p *Slots) Acquire(ctx context.Context, host string) (release func(), err error) {
	p.mu.Lock()
	if p.free > 0 {
		defer p.mu.Unlock()
		return p.grant(host), nil
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// The queue calls the function below if a request of another host takes the place of this request.
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

// grant takes a free slot for a host and returns the function that releases the slot. mu must be held.
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
// body and closes the connection: no page needs a body, and net/http would wait for the rest of the body before it
// writes the first byte of the response.
//
// Begin sets the write deadline to timeout, unless the WriteTimeout of the server is shorter. The new deadline replaces
// a deadline that an outer handler has set.
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
		_ = conn.SetWriteDeadline(time.Now().Add(timeout)) // net/http resets the deadline after the response
	}
	return true
}

// past is a deadline in the past.
var past = time.Unix(1, 0)

// Closing returns a function that aborts the response of w: a write that is in progress fails. The function must not be
// called after the handler has returned.
func Closing(w http.ResponseWriter) func() error {
	return func() error { return http.NewResponseController(w).SetWriteDeadline(past) }
}
