package netlimit

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Bodies bounds how long the body of a request may stand still, whether next reads it or not: a read fails with
// [os.ErrDeadlineExceeded] when no byte has come for stall, and a body that next leaves has that long to come to its end.
// Requests without a body are passed on as they are. A response may begin before the body has ended, and does not wait for
// it, see [http.ResponseController.EnableFullDuplex]. It belongs next to the server. Next may stream, and hijack what
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
		// Otherwise the server reads what is left of the body before the response's first byte, past this one.
		_ = b.conn.EnableFullDuplex()
		b.arm()
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
	eof   bool       // the server waits now for the client to leave, which may take as long as it likes
	ended bool       // the handler has: the connection is the server's, although a transport may still read
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.arm()
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.sawEOF()
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

func (b *body) sawEOF() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.eof = true; !b.ended {
		_ = b.conn.SetReadDeadline(time.Time{})
	}
}

// end has the server, which reads what is left, wait no longer than for a read.
func (b *body) end() {
	b.arm()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}
