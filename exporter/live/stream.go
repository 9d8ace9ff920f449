package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/limiter"
	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/fairshare"
)

// asked reads what a viewer asks for, and waits until its host may ask. It returns nil if it has answered that that cannot be.
func (p *Page) asked(w http.ResponseWriter, r *http.Request) *viewer {
	q, err := p.feed.queryOf(r)
	at, err2 := positionOf(r, &q)
	if err = errors.Join(err, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil
	}
	// A question that is wrong costs nothing and is answered at once. One that is right waits for the time that its host may use.
	host, err := p.budget.wait(r.Context(), clientip.Of(r, nil))
	if err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "your host asks too much; see how long its questions may take in the documentation", http.StatusTooManyRequests)
		return nil
	}
	return &viewer{query: q, position: at, pays: host}
}

// poll serves what is new since the position. Of polls that are read slowly, the slowest gives way.
func (p *Page) poll(w http.ResponseWriter, r *http.Request) {
	v := p.asked(w, r)
	if v == nil {
		return
	}
	give, ok := p.polls.Take(clientip.Of(r, nil), 1, limiter.Closing(w))
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
		return
	}
	defer give()
	// A poll has one answer, so the past that it wants is read before. A stream has its first message at once, and the past in the next.
	_, total := p.feed.present()
	total.older(v.past)
	body := p.feed.encode(v)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // an error means that the viewer has gone
}

// encode makes the next message for a viewer, in JSON, and has its host pay for the first one.
func (f *feed) encode(v *viewer) []byte {
	m := f.message(v)
	began := time.Now()
	body, _ := json.Marshal(m) // strings and numbers cannot fail
	if v.spent += time.Since(began); v.pays != nil {
		v.pays.ReserveN(time.Now(), min(max(0, int(v.spent.Microseconds())-least), saved))
		v.pays = nil
	}
	return body
}

// stream sends each second as an event, when it is sealed.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead { // it has no body, so it ends at once
		return
	}
	v := p.asked(w, r)
	if v == nil {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx holds events back
	conn := http.NewResponseController(w)
	send := func(event, data string) bool {
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only where there is no connection
		_, err := fmt.Fprintf(w, "%s\ndata: %s\n\n", event, data)
		return errors.Join(err, conn.Flush(), r.Context().Err()) == nil
	}
	full := fmt.Sprintf("all %d places for viewers are taken", p.opts.MaxViewers)
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	stop := limiter.Closing(w)
	give, ok := p.viewers.Take(clientip.Of(r, nil), 1, func() error {
		defer end(errGaveWay)
		return stop() // a write that waits; what is said in the end has a deadline of its own
	})
	if !ok { // a browser does not tell the page of a status
		send("retry: 10000\nevent: full", full)
		return
	}
	defer give()
	serving, line := p.serving(r), p.stats.Timeline()
	defer context.AfterFunc(serving, func() { end(nil) })()
	for ctx.Err() == nil && serving.Err() == nil {
		data := p.feed.encode(v)
		// The id is the position at which an interrupted browser resumes.
		if !send("id: "+v.position.String(), string(data)) {
			return
		}
		if _, total := p.feed.present(); !total.older(v.past) {
			_, left := line.Current()
			background.Sleep(ctx, left+time.Millisecond)
		}
	}
	if errors.Is(context.Cause(ctx), errGaveWay) {
		send("event: full", full+", and this page, the newest of its host, gave way")
	}
}

// errGaveWay is why a stream ends in favour of another host.
var errGaveWay = errors.New("another host has fewer streams")

// serving returns a context that ends when the Page is closed, or the http.Server of a request shuts down. A shutdown before the first
// stream of the server is not seen.
func (p *Page) serving(r *http.Request) context.Context {
	// A server waits at its shutdown for requests to end, and a stream has no end of its own.
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server == nil {
		return p.closed
	}
	ctx, cancel := context.WithCancel(p.closed)
	x, known := p.servers.LoadOrStore(server, ctx)
	if known {
		cancel()
	} else {
		server.RegisterOnShutdown(cancel)
	}
	return x.(context.Context)
}

// budget bounds the time that is spent on the questions of each host, because a viewer may ask again at once: with a poll, or
// with the first message of a stream. A host that asks in a loop waits for its own budget, others do not, and one that asks each
// second does not notice. Time that was used cannot be given back, so a host never gives way to another one, and others only matter for which
// of them are remembered. The zero value is ready.
type budget struct {
	mu    sync.Mutex // guards hosts
	hosts fairshare.Table[string, *rate.Limiter]
}

const (
	// A host has a tenth of a processor, and what it did not use of the last ten seconds. All are in microseconds.
	perSecond = 100_000
	saved     = 1_000_000
	least     = 1000             // that a question costs
	maxWait   = 10 * time.Second // after which it is refused
)

// wait waits until a host may ask, and returns what pays for the rest of the time that the answer takes.
func (b *budget) wait(ctx context.Context, host string) (*rate.Limiter, error) {
	x := b.of(host)
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	return x, x.WaitN(ctx, least) // an error at once, if it would take too long
}

// of returns what a host may ask. Hosts that have saved all they can are forgotten, those first that have not asked for the
// longest time.
func (b *budget) of(host string) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	for x := b.hosts.First(); x != nil && x.Value.Tokens() >= saved; x = b.hosts.First() {
		b.hosts.Remove(x)
	}
	limiter := rate.NewLimiter(perSecond, saved)
	if x := b.hosts.FirstOf(host); x != nil {
		limiter = x.Value
		b.hosts.Remove(x)
	}
	b.hosts.Add(host, 1, limiter)
	return limiter
}
