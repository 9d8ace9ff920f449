package netlimit

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Bodies bounds how long the body of a request may stand still, whether next reads it or not: a read fails with
// [os.ErrDeadlineExceeded] when no byte has come for stall, and a body that next leaves has that long to come to its end.
// Requests without a body are passed on as they are. It belongs next to the server. Next may stream, and hijack what
// has no body. A stall that is not positive bounds nothing.
func Bodies(next http.Handler, stall time.Duration) http.Handler {
	if stall <= 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		b := &body{ReadCloser: r.Body, conn: http.NewResponseController(w), stall: stall}
		b.arm() // the server may read what is left of the body before the response's first byte
		defer b.end()
		with := *r
		with.Body = b
		next.ServeHTTP(w, &with)
		r.Pattern = with.Pattern // for middleware that reads the request afterwards
	})
}

// body is a request's body. Each read of it has its own deadline.
type body struct {
	io.ReadCloser
	conn  *http.ResponseController
	stall time.Duration

	mu    sync.Mutex // guards what follows
	eof   bool       // the server waits now, without a deadline, for the client to leave
	ended bool       // the handler has: the connection is the server's, although a transport may still read
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.arm()
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.mu.Lock()
		b.eof = true
		b.mu.Unlock()
	}
	return n, err
}

// arm sets the deadline of a read that begins.
func (b *body) arm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.eof && !b.ended {
		_ = b.conn.SetReadDeadline(time.Now().Add(b.stall)) // fails only where there is no connection
	}
}

// end has the server, which reads what is left, wait no longer than for a read.
func (b *body) end() {
	b.arm()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}
