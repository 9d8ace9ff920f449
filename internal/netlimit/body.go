package netlimit

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// rest is the time that a client has to send the part of a body that the handler did not read.
const rest = 5 * time.Second

// Bodies limits the time that a request body may make no progress, whether next reads it or not: a read fails with
// [os.ErrDeadlineExceeded] if no byte arrives for stall. After next has returned, the client has five seconds to send
// the rest of the body, or stall if that is shorter; then the connection is closed. Bodies also ends a read that
// continues after next has returned, such as a read by a transport whose server has responded early; net/http would
// wait for such a read without a deadline. Requests without a body pass unchanged.
//
// Bodies must be the outermost handler of the server. Next may stream, and may hijack requests without a body. If stall
// is not positive, Bodies returns next.
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
		_ = b.arm() // the server may read the rest of the body before the first byte of the response
		defer b.end()
		with := *r
		with.Body = b
		next.ServeHTTP(w, &with)
		r.Pattern = with.Pattern // for middleware that reads the request afterwards
	})
}

// Abort ends the reads of a request body that a handler got from [Bodies]: a running read and all later ones fail. The
// handler can still respond; then the server closes the connection, or the stream in HTTP/2. Abort does not block, and
// any goroutine may call it until the handler returns. It does nothing to other bodies.
func Abort(of io.ReadCloser) {
	if b, ok := of.(*body); ok {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.eof && !b.ended {
			b.aborted = true
			b.deadline(-time.Second)
		}
	}
}

// body is the body of a request. Each read has its own deadline.
type body struct {
	io.ReadCloser
	conn  *http.ResponseController
	stall time.Duration

	reading sync.Mutex // held during a read
	mu      sync.Mutex // guards the fields below
	eof     bool       // the body was read; the server now waits without a deadline for the client to disconnect
	aborted bool       // Abort was called; the deadline remains in the past
	ended   bool       // the handler has returned; the connection belongs to the server
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

// arm sets the deadline of the next read and reports whether the body may be read.
func (b *body) arm() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.eof && !b.ended && !b.aborted {
		b.deadline(b.stall)
	}
	return !b.ended && !b.aborted
}

// end interrupts a running read, and gives the client at most rest for the remaining body. It gives no time after an
// abort: the server fails to read the remaining body, and closes the connection after the response.
func (b *body) end() {
	b.mu.Lock()
	b.ended = true
	left, closed := !b.eof, b.aborted
	if left {
		b.deadline(-time.Second)
	}
	b.mu.Unlock()
	if left {
		b.reading.Lock() // wait for the end of the last read
		defer b.reading.Unlock()
		if !closed {
			b.deadline(min(rest, b.stall))
		}
	}
}

func (b *body) deadline(in time.Duration) {
	_ = b.conn.SetReadDeadline(time.Now().Add(in)) // fails only where there is no connection
}
