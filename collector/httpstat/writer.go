package httpstat

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// writer records the response of one request. It also holds the request that the handler gets, to save an allocation.
// There are two ways to learn the status:
//
//	handler --> one of the types in interfaces.go --> writer --> ResponseWriter    the writer records each step
//	handler --> net/http's own writer                                              read reads its fields afterwards
//
// The second way is for requests with a body on HTTP/1, see [serverFields].
//
// writer has the methods of http.ResponseWriter. It also has optional methods that do no harm if the wrapped
// ResponseWriter lacks them, such as WriteString, which then calls Write. Handlers use type assertions to detect other
// abilities, such as http.Flusher. The types in interfaces.go add exactly the abilities of the wrapped ResponseWriter.
type writer struct {
	to      http.ResponseWriter
	ctx     context.Context // of request; net/http cancels its parent when the client hangs up
	request http.Request
	status  int32 // of the response; 0 before the header is written
	late    bool  // the client had hung up when the response began
	own     bool  // the handler gets net/http's own writer
}

// begin records the status when the response begins.
func (w *writer) begin(status int) {
	if w.status == 0 {
		w.status, w.late = int32(status), hungUp(w.ctx)
	}
}

// implyOK records status 200 if the handler starts the body without a status, as net/http does.
func (w *writer) implyOK() { w.begin(http.StatusOK) }

// Unwrap lets http.ResponseController reach the wrapped writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.to }

func (w *writer) Header() http.Header { return w.to.Header() }

func (w *writer) WriteHeader(status int) {
	w.to.WriteHeader(status) // panics if status does not have three digits
	// Record the first final status. Informational ones (1xx) precede it, but 101 is final.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
}

func (w *writer) Write(b []byte) (int, error) {
	w.implyOK()
	return w.to.Write(b)
}

// WriteString implements io.StringWriter. The writers of net/http do, too.
func (w *writer) WriteString(s string) (int, error) {
	w.implyOK()
	return io.WriteString(w.to, s)
}

// http.ResponseController calls the methods below. It would also find them through Unwrap, but some handlers call them
// directly, because the writers of net/http have them.

func (w *writer) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(w.to).SetReadDeadline(t)
}

func (w *writer) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(w.to).SetWriteDeadline(t)
}

func (w *writer) EnableFullDuplex() error { return http.NewResponseController(w.to).EnableFullDuplex() }

// Each of these types adds an optional interface to a writer. They are the same struct under another name, so a pointer
// to a writer can be converted to a pointer to each of them.
type (
	flusher       writer
	hijacker      writer
	closeNotifier writer
	pusher        writer
	readerFrom    writer
)

// Flush implements http.Flusher.
func (w *flusher) Flush() { _ = w.FlushError() }

// FlushError is the method that http.ResponseController prefers to Flush.
func (w *flusher) FlushError() error {
	(*writer)(w).implyOK()
	return http.NewResponseController(w.to).Flush()
}

// Hijack implements http.Hijacker. The hijacked connection may switch to any protocol, so the status is 101.
func (w *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := w.to.(http.Hijacker).Hijack()
	if err == nil {
		(*writer)(w).begin(http.StatusSwitchingProtocols)
	}
	return conn, buf, err
}

// CloseNotify implements http.CloseNotifier. It is deprecated, but gin requires it for streams.
func (w *closeNotifier) CloseNotify() <-chan bool {
	return w.to.(httpCloseNotifier).CloseNotify()
}

// Push implements http.Pusher.
func (w *pusher) Push(target string, opts *http.PushOptions) error {
	return w.to.(http.Pusher).Push(target, opts)
}

// ReadFrom implements io.ReaderFrom. It lets net/http send a file without copying it.
func (w *readerFrom) ReadFrom(r io.Reader) (int64, error) {
	(*writer)(w).implyOK()
	return w.to.(io.ReaderFrom).ReadFrom(r)
}
