package live

import (
	"bytes"
	"compress/flate"
	"fmt"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/gzipped"
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

// poll serves the seconds since the position.
func (p *Page) poll(w http.ResponseWriter, r *http.Request) {
	at, err := positionOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n := p.feed.after(at)
	p.respond(w, r, n.encode())
}

// message is an event of the stream, the update since a position. Most viewers have the same position and share it.
type message struct {
	from, to      position
	plain, zipped []byte
}

// message makes the next message of a viewer. Its id is the position behind it, at which an interrupted browser resumes.
func (f *feed) message(from position) *message {
	n := f.after(from)
	if last := f.last.Load(); last != nil && last.from == from && last.to == n.now {
		return last
	}
	m := &message{from: from, to: n.now}
	m.plain = append([]byte("id: "+m.to.String()+"\ndata: "), n.encode()...)
	m.plain = append(m.plain, "\n\n"...)
	m.zipped = f.chunk(m.plain)
	f.last.Store(m)
	return m
}

// gzipHead starts a gzip stream, and chunk compresses a part of its body that refers to nothing before it. So a chunk is
// compressed once and can follow any other. A stream has no trailer, because it has no end.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

func (f *feed) chunk(b []byte) []byte {
	z, _ := f.zips.Get().(*flate.Writer)
	if z == nil {
		z, _ = flate.NewWriter(nil, flate.DefaultCompression)
	}
	defer f.zips.Put(z)
	var out bytes.Buffer // never fails
	z.Reset(&out)
	_, _ = z.Write(b)
	_ = z.Flush()
	return out.Bytes()
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
	select {
	case p.viewers <- struct{}{}:
		defer func() { <-p.viewers }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx holds events back
	w.Header().Set("Vary", "Accept-Encoding")
	zip, head := gzipped.Accepted(r), ""
	if zip {
		w.Header().Set("Content-Encoding", "gzip")
		head = gzipHead
	}
	shutdown := p.shutdown(r)
	conn := http.NewResponseController(w)
	line := p.stats.Timeline()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		case <-p.closed.Done():
			return
		case <-shutdown:
			return
		}
		m := p.feed.message(at)
		at = m.to
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only where there is no connection
		b := m.plain
		if zip {
			b = m.zipped
		}
		if head != "" {
			b, head = append([]byte(head), b...), ""
		}
		if _, err := w.Write(b); err != nil {
			return
		}
		if conn.Flush() != nil {
			return
		}
		now := line.Now()
		timer.Reset(line.At(now).End.Sub(now) + time.Millisecond)
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
