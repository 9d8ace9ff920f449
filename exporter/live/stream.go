package live

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/internal/clienthost"

	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/limiter"
)

// asked reads what a viewer asks for, and where it is. It reports false if it has answered that it cannot be read.
func (p *Page) asked(w http.ResponseWriter, r *http.Request) (q query, at position, ok bool) {
	q, err := p.feed.queryOf(r)
	at, err2 := positionOf(r)
	if err = errors.Join(err, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return q, at, err == nil
}

// poll serves what is new since the position. Of polls that are read slowly, the slowest makes room.
func (p *Page) poll(w http.ResponseWriter, r *http.Request) {
	q, at, ok := p.asked(w, r)
	if !ok {
		return
	}
	give, ok := p.polls.Take(clienthost.Of(r, nil), 1, limiter.Closing(w))
	if !ok {
		full(w)
		return
	}
	defer give()
	if filled := p.feed.fill(0); filled != nil {
		<-filled
	}
	end, err := p.turn(r)
	if err != nil {
		full(w)
		return
	}
	body, _ := p.feed.message(q, at, func(p position) string { return fmt.Sprintf(`{"after":"%v",`, p) })
	zip := gzipped.Accepted(r)
	end(body.size(zip))
	header(w, "application/json", zip)
	_ = write(w, func(b *bufio.Writer) { // an error means that the viewer has gone
		if zip {
			_, _ = b.WriteString(gzipHead)
		}
		if body.writeTo(b, zip); zip {
			_, _ = b.Write(body.end())
		}
	})
}

// header sets the header of a response that is not to be kept.
func header(w http.ResponseWriter, contentType string, zip bool) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept-Encoding")
	if zip {
		w.Header().Set("Content-Encoding", "gzip")
	}
}

// full refuses a viewer.
func full(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "10")
	http.Error(w, "too many viewers", http.StatusServiceUnavailable)
}

// stream sends each second as an event, when it is sealed.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	q, at, ok := p.asked(w, r)
	if !ok {
		return
	}
	if r.Method == http.MethodHead { // it has no body, so it ends at once
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	dropped, stop := make(chan struct{}), limiter.Closing(w)
	give, ok := p.viewers.Take(clienthost.Of(r, nil), 1, func() error {
		close(dropped)
		return stop()
	})
	if !ok {
		full(w)
		return
	}
	defer give()
	end, err := p.turn(r)
	if err != nil {
		full(w)
		return
	}
	event, at := p.feed.event(q, at)
	zip := gzipped.Accepted(r)
	end(event.size(zip))
	header(w, "text/event-stream", zip)
	w.Header().Set("X-Accel-Buffering", "no") // or nginx holds events back
	head := ""
	if zip {
		head = gzipHead
	}
	shutdown := p.shutdown(r)
	conn := http.NewResponseController(w)
	line := p.stats.Timeline()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for p.closed.Err() == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only where there is no connection
		err := write(w, func(b *bufio.Writer) {
			_, _ = b.WriteString(head)
			event.writeTo(b, zip)
		})
		if err != nil || conn.Flush() != nil {
			return
		}
		filled := p.feed.fill(at.first)
		now := line.Now()
		timer.Reset(line.At(now).End.Sub(now) + time.Millisecond)
		select {
		case <-timer.C:
		case <-filled:
		case <-dropped:
			return
		case <-r.Context().Done():
			return
		case <-p.closed.Done():
			return
		case <-shutdown:
			return
		}
		head = ""
		event, at = p.feed.event(q, at)
	}
}

// event returns the next message of a stream, and the position behind it. That is its id, at which an interrupted browser resumes.
func (f *feed) event(q query, from position) (pieces, position) {
	all, at := f.message(q, from, func(p position) string { return "id: " + p.String() + "\ndata: {" })
	return append(all, eventEnd), at
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
