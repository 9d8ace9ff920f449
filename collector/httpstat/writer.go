package httpstat

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// writer passes everything on and remembers the status. It implements no optional interface itself: a handler that
// asks for one must be told the truth, so the types below add those that the wrapped writer has.
type writer struct {
	http.ResponseWriter
	status int // of the response; 0 while no header was written
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

type flusher struct{ *writer }

func (w flusher) Flush() { _ = w.FlushError() }

func (w flusher) FlushError() error {
	w.implied()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

type hijacker struct{ *writer }

func (w hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := w.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusSwitchingProtocols // what is said on the connection is between its two ends
	}
	return conn, buf, err
}

type readerFrom struct{ *writer }

func (w readerFrom) ReadFrom(r io.Reader) (int64, error) {
	w.implied()
	return w.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
}

type pusher struct{ *writer }

func (w pusher) Push(target string, o *http.PushOptions) error {
	return w.ResponseWriter.(http.Pusher).Push(target, o)
}

// The combinations that occur: net/http's HTTP/1 writer, its HTTP/2 writer, and those of other middleware.
type (
	http1 struct {
		*writer
		flusher
		hijacker
		readerFrom
	}
	http2 struct {
		*writer
		flusher
		pusher
	}
	hijackable struct {
		*writer
		flusher
		hijacker
	}
)

// watch wraps w. What the handler gets has the optional interfaces that w has.
func watch(w http.ResponseWriter) (*writer, http.ResponseWriter) {
	seen := &writer{ResponseWriter: w}
	_, flush := w.(http.Flusher)
	_, hijack := w.(http.Hijacker)
	_, read := w.(io.ReaderFrom)
	_, push := w.(http.Pusher)
	switch {
	case flush && hijack && read:
		return seen, http1{seen, flusher{seen}, hijacker{seen}, readerFrom{seen}}
	case flush && hijack:
		return seen, hijackable{seen, flusher{seen}, hijacker{seen}}
	case flush && push:
		return seen, http2{seen, flusher{seen}, pusher{seen}}
	case flush:
		return seen, flusher{seen}
	default:
		return seen, seen
	}
}
