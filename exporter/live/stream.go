package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/limiter"
)

// admit parses a request, takes a share of shares for it, and then waits until the budget of its host allows it, so no
// more requests wait than shares exist. It returns the viewer and a function that releases the share. A request that is
// invalid or in excess ends here: admit calls refuse, before a compressor or the Collector was used, and returns nil.
//
// The context of the viewer ends with the share.
func (p *Page) admit(w http.ResponseWriter, r *http.Request, shares *limiter.Shares, refuse func()) (*viewer, func()) {
	q, err := p.feed.parseQuery(r)
	at, err2 := parsePosition(r, &q)
	if err = errors.Join(err, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest) // before the budget, because an invalid request costs nothing
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	abortWrite := limiter.Closing(w)
	release, ok := shares.Take(clientip.Of(r, nil), 1, func() error {
		defer cancel(errEvicted)
		return abortWrite() // the event that reports an eviction sets its own deadline
	})
	if !ok {
		cancel(nil)
		refuse()
		return nil, nil
	}
	end := func() {
		release()
		cancel(nil)
	}
	host, err := p.budget.wait(ctx, clientip.Of(r, nil))
	if err != nil {
		defer end()
		if errors.Is(context.Cause(ctx), errEvicted) {
			refuse()
			return nil, nil
		}
		w.Header().Set("Retry-After", "10")
		const refusal = "too many requests from your host; see docs/security.md for the time that a host may use"
		http.Error(w, refusal, http.StatusTooManyRequests)
		return nil, nil
	}
	return &viewer{ctx: ctx, query: q, position: at, limiter: host}, end
}

// servePoll responds with one message: the data since the viewer's position. If too many polls wait or are being
// written, the slowest one is aborted.
func (p *Page) servePoll(w http.ResponseWriter, r *http.Request) {
	v, release := p.admit(w, r, p.polls, func() {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
	})
	if v == nil {
		return
	}
	defer release()
	p.compress(func(w http.ResponseWriter, _ *http.Request) {
		// A poll has a single response, so the requested history is read first. A stream sends its first message
		// immediately, and the history in the next one.
		_, total := p.feed.current()
		total.readOlder(v.totalSeconds)
		body := p.feed.encode(v)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body) // an error means that the viewer has disconnected
	}).ServeHTTP(w, r)
}

// encode returns the next message for a viewer in JSON. It charges the first message to the viewer's host.
func (f *feed) encode(v *viewer) []byte {
	m := f.message(v)
	began := time.Now()
	body, _ := json.Marshal(m) // cannot fail: m contains only strings and numbers
	if v.spent += time.Since(began); v.limiter != nil {
		v.limiter.ReserveN(time.Now(), min(max(0, int(v.spent.Microseconds())-minCost), burst))
		v.limiter = nil
	}
	return body
}

// serveStream sends an event for each second when it is sealed. An event is an ID, which is a position, and a message:
//
//	id: 3534646091000-1767323045-1767323104
//	data: {"after":"3534646091000-1767323045-1767323104","process":1767323045500,…,"at":1767323104,"total":[[…]],…}
//
// The first event contains the last second and the table. The second event follows immediately with the history.
func (p *Page) serveStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead { // the response has no body
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would otherwise withhold events
	full := fmt.Sprintf("all %d places for viewers are taken", p.opts.MaxViewers)
	v, release := p.admit(w, r, p.viewers, func() {
		// Send an event, because a browser hides the status of a failed stream.
		sendEvent(w, r, "retry: 10000\nevent: full", full)
	})
	if v == nil {
		return
	}
	defer release()
	p.compress(func(w http.ResponseWriter, r *http.Request) {
		p.follow(w, r, v)
		if errors.Is(context.Cause(v.ctx), errEvicted) {
			sendEvent(w, r, "event: full", full+", and this page, the newest of its host, gave way")
		}
	}).ServeHTTP(w, r)
}

// follow sends messages to a viewer until its context ends.
func (p *Page) follow(w http.ResponseWriter, r *http.Request, v *viewer) {
	ctx, cancel := context.WithCancel(v.ctx)
	defer cancel()
	server, line := p.serverContext(r), p.stats.Timeline()
	defer context.AfterFunc(server, cancel)()
	for ctx.Err() == nil && server.Err() == nil {
		data := p.feed.encode(v)
		// The ID is the position. A browser resumes an interrupted stream from its last ID.
		if !sendEvent(w, r, "id: "+v.position.String(), string(data)) {
			return
		}
		// The next message follows immediately if it contains more history, and otherwise after the next boundary.
		if _, total := p.feed.current(); !total.readOlder(v.totalSeconds) {
			_, left := line.Current()
			background.Sleep(ctx, left+time.Millisecond)
		}
	}
}

// sendEvent sends an event with a deadline, and reports whether it was written.
func sendEvent(w http.ResponseWriter, r *http.Request, event, data string) bool {
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only without a connection, such as in a test
	_, err := fmt.Fprintf(w, "%s\ndata: %s\n\n", event, data)
	return errors.Join(err, conn.Flush(), r.Context().Err()) == nil
}

// errEvicted is the cause of a stream's end if the stream of another host replaces it.
var errEvicted = errors.New("evicted by the stream of a host with fewer streams")

// serverContext returns a context that ends when the Page is closed, or when the http.Server of the request shuts down.
// A server waits in Shutdown until its requests end, and a stream would not end by itself. The first stream of a server
// registers with it, so a shutdown before the first stream goes unnoticed.
func (p *Page) serverContext(r *http.Request) context.Context {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server == nil {
		return p.closed
	}
	ctx, cancel := context.WithCancel(p.closed)
	x, loaded := p.servers.LoadOrStore(server, ctx)
	if loaded {
		cancel()
	} else {
		server.RegisterOnShutdown(cancel)
	}
	return x.(context.Context)
}
