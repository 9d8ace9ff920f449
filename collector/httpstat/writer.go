package httpstat

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
)

// writer forwards all calls, and records the status. It implements no optional interface itself, because handlers
// detect the abilities of a writer by type assertions. The types below add the interfaces that the wrapped writer has.
// The request that the handler gets is in the same struct, to save an allocation.
type writer struct {
	http.ResponseWriter
	status  int // of the response; 0 before the header is written
	request http.Request
}

// Unwrap lets http.ResponseController reach the wrapped writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status) // panics if status does not have three digits
	// Record the first final status. Informational ones (1xx) precede it, but 101 is final.
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
}

func (w *writer) Write(b []byte) (int, error) {
	w.implyOK()
	return w.ResponseWriter.Write(b)
}

// implyOK records status 200 if the handler starts the body without a status, as net/http does.
func (w *writer) implyOK() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}

// These types cover the combinations of interfaces that occur: flusher for net/http's HTTP/2 writer, hijacker for the
// writers of other middleware, and http1 for net/http's HTTP/1 writer. The HTTP/2 writer also implements http.Pusher.
// The types leave it out, because browsers no longer support server push.
type (
	flusher  struct{ writer }
	hijacker struct{ flusher }
	http1    struct{ hijacker }
)

func (w *flusher) Flush() { _ = w.FlushError() }

func (w *flusher) FlushError() error {
	w.implyOK()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := w.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusSwitchingProtocols // the hijacked connection may switch to any protocol
	}
	return conn, buf, err
}

func (w *http1) ReadFrom(r io.Reader) (int64, error) {
	w.implyOK()
	return w.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
}

// wrapWriter wraps w, and copies r with the context ctx. The copy is in recorder.request. The handler gets the writer
// wrapped, which has the optional interfaces of w, as far as the types above cover them.
func wrapWriter(
	ctx context.Context, w http.ResponseWriter, r *http.Request,
) (recorder *writer, wrapped http.ResponseWriter) {
	_, flush := w.(http.Flusher)
	_, hijack := w.(http.Hijacker)
	_, read := w.(io.ReaderFrom)
	switch {
	case flush && hijack && read:
		x := new(http1)
		recorder, wrapped = &x.writer, x
	case flush && hijack:
		x := new(hijacker)
		recorder, wrapped = &x.writer, x
	case flush:
		x := new(flusher)
		recorder, wrapped = &x.writer, x
	default:
		recorder = new(writer)
		wrapped = recorder
	}
	recorder.ResponseWriter, recorder.request = w, *r.WithContext(ctx)
	return recorder, wrapped
}
