package live

import (
	"fmt"
	"net/http"
	"time"
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

// stream sends each second as an event, when it is sealed. The id of an event is the position after it, so that a browser
// that was cut off goes on there.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	at, err := positionOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
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
		}
		n := p.feed.after(at)
		at = n.now
		_ = conn.SetWriteDeadline(time.Now().Add(patience)) // what cannot have a deadline is not a connection
		b := append([]byte("id: "+at.String()+"\ndata: "), n.encode()...)
		b = append(b, "\n\n"...)
		if _, err := w.Write(b); err != nil {
			return
		}
		if conn.Flush() != nil {
			return
		}
		now := line.Now()
		timer.Reset(line.At(now).End - now + time.Millisecond)
	}
}
