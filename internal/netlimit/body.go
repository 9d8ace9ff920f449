package netlimit

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// rest is how long a server reads what a handler has left of a body.
const rest = 5 * time.Second

// Bodies bounds how long the body of a request may make no progress, whether next reads it or not: a read fails with
// [os.ErrDeadlineExceeded] when no byte has come for stall. What is left of the body when next has returned has five seconds to
// come, or stall if that is shorter; then the connection is closed. It also ends a read that is still going on, such as that of
// a transport whose server has answered early: net/http would wait for that without a deadline. Requests without a body are passed on
// as they are. It belongs next to the server. Next may stream, and hijack what has no body. A stall that is not positive bounds
// nothing.
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
		_ = b.arm() // the server may read what is left of the body before the response's first byte
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

	reading sync.Mutex // held by a read
	mu      sync.Mutex // guards what follows
	eof     bool       // the server waits now, without a deadline, for the client to leave
	ended   bool       // the handler has: the connection is the server's
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if !b.arm() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.mu.Lock()
		b.eof = true
		b.mu.Unlock()
	}
	return n, err
}

// arm sets the deadline of a read that begins, and reports whether it may.
func (b *body) arm() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.eof && !b.ended {
		b.deadline(b.stall)
	}
	return !b.ended
}

// end interrupts a read that goes on, and has the server wait no longer than rest for what is left.
func (b *body) end() {
	b.mu.Lock()
	b.ended = true
	left := !b.eof
	if left {
		b.deadline(-time.Second)
	}
	b.mu.Unlock()
	if left {
		b.reading.Lock() // nobody reads any more
		defer b.reading.Unlock()
		b.deadline(min(rest, b.stall))
	}
}

func (b *body) deadline(in time.Duration) {
	_ = b.conn.SetReadDeadline(time.Now().Add(in)) // fails only where there is no connection
}
