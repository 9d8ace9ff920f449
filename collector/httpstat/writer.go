package httpstat

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// writer records the response to one request. It also holds the request that the handler gets, so that one allocation
// suffices for both. There are two ways to learn the status:
//
//	handler --> one of the types in interfaces.go --> writer --> ResponseWriter   writer records the status
//	handler --> net/http's own writer                                             read reads fields of this writer
//	                                                                              after the handler has returned
//
// The second way is for requests with a body on HTTP/1, see [serverFields].
//
// writer has the methods of http.ResponseWriter. It also has optional methods, such as WriteString, that work even if
// the wrapped ResponseWriter lacks them. Handlers detect other abilities, such as http.Flusher, by type assertions. The
// types in interfaces.go add exactly the abilities that the wrapped ResponseWriter has.
type writer struct {
	target  http.ResponseWriter // writer that the handler would get without httpstat
	ctx     context.Context     // context of request; canceled when the client hangs up
	request http.Request
	status  int32 // status of the response; 0 before the response begins
	late    bool  // the client had hung up when the response began
	own     bool  // the handler gets net/http's own writer
}

// begin records the status when the response begins. If the response has begun already, begin does nothing.
func (w *writer) begin(status int) {
	if w.status == 0 {
		w.status, w.late = int32(status), hungUp(w.ctx)
	}
}

// implyOK records status 200 if the handler has written no status. It is called when the body begins, at a flush, and
// when the handler returns, because net/http then sends 200.
func (w *writer) implyOK() { w.begin(http.StatusOK) }

// Unwrap lets http.ResponseController reach the wrapped writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.target }

func (w *writer) Header() http.Header { return w.target.Header() }

func (w *writer) WriteHeader(status int) {
	w.target.WriteHeader(status) // panics if status does not have three digits
	// Record the first final status. Informational statuses (1xx) are not final, except for 101.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
}

func (w *writer) Write(b []byte) (int, error) {
	w.implyOK()
	return w.target.Write(b)
}

// WriteString implements io.StringWriter, as the writers of net/http do.
func (w *writer) WriteString(s string) (int, error) {
	w.implyOK()
	return io.WriteString(w.target, s)
}

// Handlers may call the following methods directly, because the writers of net/http have them. http.ResponseController
// does not need them: it finds the methods of the wrapped writer through Unwrap.

func (w *writer) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(w.target).SetReadDeadline(t)
}

func (w *writer) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(w.target).SetWriteDeadline(t)
}

func (w *writer) EnableFullDuplex() error {
	return http.NewResponseController(w.target).EnableFullDuplex()
}

// Each of these types adds an optional interface to writer. All of them have the same fields as writer, so a *writer
// can be converted to a pointer to any of them.
type (
	flusher       writer
	hijacker      writer
	closeNotifier writer
	pusher        writer
	readerFrom    writer
)

// Flush implements http.Flusher.
func (w *flusher) Flush() { _ = w.FlushError() }

// FlushError is like Flush, but returns an error. http.ResponseController prefers FlushError to Flush.
func (w *flusher) FlushError() error {
	(*writer)(w).implyOK()
	return http.NewResponseController(w.target).Flush()
}

// Hijack implements http.Hijacker. The recorded status is 101, because the hijacked connection may switch to any
// protocol.
func (w *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := w.target.(http.Hijacker).Hijack()
	if err == nil {
		(*writer)(w).begin(http.StatusSwitchingProtocols)
	}
	return conn, buf, err
}

// CloseNotify implements http.CloseNotifier, which is deprecated. gin requires it for streams.
func (w *closeNotifier) CloseNotify() <-chan bool {
	return w.target.(httpCloseNotifier).CloseNotify()
}

// Push implements http.Pusher.
func (w *pusher) Push(target string, opts *http.PushOptions) error {
	return w.target.(http.Pusher).Push(target, opts)
}

// ReadFrom implements io.ReaderFrom. It lets net/http send a file without copying it.
func (w *readerFrom) ReadFrom(r io.Reader) (int64, error) {
	(*writer)(w).implyOK()
	return w.target.(io.ReaderFrom).ReadFrom(r)
}
