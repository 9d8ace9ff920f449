package live

import (
	"bufio"
	"fmt"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/internal/clienthost"

	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/limiter"
)

// String returns the position as in event ids and parameters.
func (p position) String() string { return fmt.Sprintf("%d-%d-%d", p.unix, p.epoch, p.known) }

// positionOf reads the viewer's position: the header Last-Event-ID or the parameter after.
func positionOf(r *http.Request) (p position, err error) {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.URL.Query().Get("after")
	}
	if id == "" {
		return p, nil
	}
	if _, err := fmt.Sscanf(id, "%d-%d-%d", &p.unix, &p.epoch, &p.known); err != nil || p.String() != id {
		return p, fmt.Errorf("invalid position %.50q; it must be the id of an event", id)
	}
	return p, nil
}

// poll serves the seconds since the position. Of polls that are read slowly, the slowest makes room.
func (p *Page) poll(w http.ResponseWriter, r *http.Request) {
	at, err := positionOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	give, ok := p.polls.Take(clienthost.Of(r, nil), 1, limiter.Closing(w))
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
	n := p.feed.after(at)
	body, zip := n.encode(""), gzipped.Accepted(r)
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
	at, err := positionOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
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
	event, at := p.feed.event(at)
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
		now := line.Now()
		timer.Reset(line.At(now).End.Sub(now) + time.Millisecond)
		select {
		case <-timer.C:
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
		event, at = p.feed.event(at)
	}
}

// event returns the next message of a stream, and the position behind it. That is its id, at which an interrupted browser resumes.
func (f *feed) event(from position) (pieces, position) {
	n := f.after(from)
	return append(n.encode("id: "+n.now.String()+"\ndata: "), eventEnd), n.now
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
