package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/limiter"
	"github.com/windowstat/windowstat/internal/clientip"
)

// asked reads what a viewer asks for, and waits until its host may ask. It reports false if it has answered that that cannot be.
// spent is to be called with the time that the answer took.
func (p *Page) asked(w http.ResponseWriter, r *http.Request) (v *viewer, spent func(time.Duration), ok bool) {
	q, err := p.feed.queryOf(r)
	at, err2 := positionOf(r, &q)
	if err = errors.Join(err, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, nil, false
	}
	if spent, err = p.budget.wait(r.Context(), clientip.Of(r, nil)); err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "your host asks too much; see how long its questions may take in the documentation", http.StatusTooManyRequests)
		return nil, nil, false
	}
	return &viewer{query: q, position: at}, spent, true
}

// poll serves what is new since the position. Of polls that are read slowly, the slowest gives way.
func (p *Page) poll(w http.ResponseWriter, r *http.Request) {
	v, spent, ok := p.asked(w, r)
	if !ok {
		return
	}
	give, ok := p.polls.Take(clientip.Of(r, nil), 1, limiter.Closing(w))
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
		return
	}
	defer give()
	_, total, _ := p.feed.present()
	total.older(v.past)
	body, err := p.feed.encode(v)
	spent(v.spent)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // an error means that the viewer has gone
}

// encode makes the next message for a viewer, in JSON.
func (f *feed) encode(v *viewer) ([]byte, error) {
	m := f.message(v)
	defer func(began time.Time) { v.spent += time.Since(began) }(time.Now())
	return json.Marshal(m)
}

// stream sends each second as an event, when it is sealed.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead { // it has no body, so it ends at once
		return
	}
	v, spent, ok := p.asked(w, r)
	if !ok {
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
	dropped, stop := make(chan struct{}), limiter.Closing(w)
	give, ok := p.viewers.Take(clientip.Of(r, nil), 1, func() error {
		defer close(dropped)
		return stop() // a write that waits; what is said in the end has a deadline of its own
	})
	if !ok { // a browser does not tell the page of a status
		send("retry: 10000\nevent: full", full)
		return
	}
	defer give()
	shutdown := p.shutdown(r)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for p.closed.Err() == nil {
		data, err := p.feed.encode(v)
		if spent != nil {
			spent(v.spent)
			spent = nil
		}
		// The id is the position at which an interrupted browser resumes.
		if err != nil || !send("id: "+v.position.String(), string(data)) {
			return
		}
		_, total, _ := p.feed.present()
		if total.older(v.past) {
			continue
		}
		line := p.stats.Timeline()
		now := line.Now()
		timer.Reset(line.At(now).End.Sub(now) + time.Millisecond)
		select {
		case <-timer.C:
			continue
		case <-dropped:
			send("event: full", full+", and this page, the newest of its host, gave way")
		case <-r.Context().Done():
		case <-p.closed.Done():
		case <-shutdown:
		}
		return
	}
}

// shutdown returns a channel that is closed when the server of a request shuts down; nil if it is not an http.Server. A
// shutdown before the first stream of the server is not seen.
func (p *Page) shutdown(r *http.Request) <-chan struct{} {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server == nil {
		return nil
	}
	began := make(chan struct{})
	x, known := p.servers.LoadOrStore(server, began)
	if !known {
		server.RegisterOnShutdown(func() { close(began) })
	}
	return x.(chan struct{})
}
