package live

import (
	"bytes"
	"compress/flate"
	"fmt"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/gzipped"
)

// String is the position as it stands in ids and parameters.
func (p position) String() string { return fmt.Sprintf("%d-%d-%d", p.unix, p.epoch, p.known) }

// positionOf reads the viewer's position from the request: the id of the last event, or the parameter after.
func positionOf(r *http.Request) (p position, err error) {
	said := r.Header.Get("Last-Event-ID")
	if said == "" {
		said = r.URL.Query().Get("after")
	}
	if said == "" {
		return p, nil
	}
	if _, err := fmt.Sscanf(said, "%d-%d-%d", &p.unix, &p.epoch, &p.known); err != nil || p.String() != said {
		return p, fmt.Errorf("the position is %.50q; it must be the id of an event", said)
	}
	return p, nil
}

// poll answers with the seconds since the position.
func (p *Page) poll(w http.ResponseWriter, r *http.Request) {
	at, err := positionOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n := p.feed.after(at)
	p.answer(w, r, n.encode())
}

// message is an event of the stream: what is new since a position. Most viewers are at the same one, and share it.
type message struct {
	from, to      position
	plain, zipped []byte
}

// message makes the next message of a viewer. Its id is the position after it, so that a browser that was cut off goes on
// there.
func (f *feed) message(from position) *message {
	n := f.after(from)
	if last := f.last.Load(); last != nil && last.from == from && last.to == n.now {
		return last
	}
	m := &message{from: from, to: n.now}
	m.plain = append([]byte("id: "+m.to.String()+"\ndata: "), n.encode()...)
	m.plain = append(m.plain, "\n\n"...)
	m.zipped = f.part(m.plain)
	f.last.Store(m)
	return m
}

// gzipHead begins a gzip stream, and part makes a part of its body that refers to nothing before it. So parts can be zipped
// once, and follow each other in any stream. A stream has no end, because it is cut off.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

func (f *feed) part(b []byte) []byte {
	z, _ := f.zips.Get().(*flate.Writer)
	if z == nil {
		z, _ = flate.NewWriter(nil, flate.DefaultCompression)
	}
	defer f.zips.Put(z)
	var out bytes.Buffer // takes all
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
	if r.Method == http.MethodHead { // nobody would read it, or take it for ended
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	select {
	case p.viewers <- struct{}{}:
		defer func() { <-p.viewers }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "there are too many viewers", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep it back
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
		_ = conn.SetWriteDeadline(time.Now().Add(patience)) // what cannot have a deadline is not a connection
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

// shutdown returns a channel that is closed when the server of a request shuts down; nil if it is no http.Server. A shutdown
// that was called before the server's first stream began is not seen.
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
