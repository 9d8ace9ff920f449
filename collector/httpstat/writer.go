package httpstat

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
)

// writer passes everything on and remembers the status. It implements no optional interface itself: a handler that
// asks for one must be told the truth, so the types below add those that the wrapped writer has. The request that goes
// with the response is beside it, so that both are one allocation.
type writer struct {
	http.ResponseWriter
	status  int // of the response; 0 while no header was written
	request http.Request
}

// Unwrap lets http.ResponseController reach the wrapped writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status) // which panics for one that has not three digits
	// Only the first counts, and informational ones come before it. 101 is final.
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
}

func (w *writer) Write(b []byte) (int, error) {
	w.implied()
	return w.ResponseWriter.Write(b)
}

// implied notes the status that goes out if none was set before the body begins.
func (w *writer) implied() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}

// The combinations that occur: net/http's writer of HTTP/2, other middleware's writers, and net/http's of HTTP/1. That of HTTP/2 can push,
// too, which browsers do not take any more.
type (
	flusher  struct{ writer }
	hijacker struct{ flusher }
	http1    struct{ hijacker }
)

func (w *flusher) Flush() { _ = w.FlushError() }

func (w *flusher) FlushError() error {
	w.implied()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := w.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusSwitchingProtocols // what is said on the connection is between its two ends
	}
	return conn, buf, err
}

func (w *http1) ReadFrom(r io.Reader) (int64, error) {
	w.implied()
	return w.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
}

// watch wraps w, and copies r with another context. What the handler gets has the optional interfaces that w has.
func watch(ctx context.Context, w http.ResponseWriter, r *http.Request) (seen *writer, wrapped http.ResponseWriter) {
	_, flush := w.(http.Flusher)
	_, hijack := w.(http.Hijacker)
	_, read := w.(io.ReaderFrom)
	switch {
	case flush && hijack && read:
		x := new(http1)
		seen, wrapped = &x.writer, x
	case flush && hijack:
		x := new(hijacker)
		seen, wrapped = &x.writer, x
	case flush:
		x := new(flusher)
		seen, wrapped = &x.writer, x
	default:
		seen = new(writer)
		wrapped = seen
	}
	seen.ResponseWriter, seen.request = w, *r.WithContext(ctx)
	return seen, wrapped
}
