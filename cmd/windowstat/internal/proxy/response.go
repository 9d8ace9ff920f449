package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
)

// responseWriter writes the upstream's response to the client. It prevents net/http from adding or removing headers.
//
// net/http assumes that its handler wrote the response, and completes it. A proxy must not complete the response of
// another server, so responseWriter marks each header that net/http would add or remove.
type responseWriter struct {
	http.ResponseWriter
	request *http.Request
	body    *clientBody // of the request, or nil
}

// Unwrap lets http.ResponseController reach the wrapped writer.
func (a *responseWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader sends the upstream's headers. net/http adds a Date and a guessed Content-Type to responses without them,
// unless the header map has a nil value. It also removes the headers of a 304 that describe the body.
func (a *responseWriter) WriteHeader(status int) {
	switch {
	case status == http.StatusContinue:
		a.sendContinue()
		return
	case status < http.StatusOK && status != http.StatusSwitchingProtocols && !a.request.ProtoAtLeast(1, 1):
		return // HTTP/1.0 has no informational responses, and takes them for the final one
	case status >= http.StatusOK:
		h := a.Header()
		a.end()
		for _, name := range []string{"Date", "Content-Type"} {
			if _, has := h[name]; !has {
				h[name] = nil
			}
		}
		if status == http.StatusNotModified {
			keep(h, "Content-Length", "Content-Type")
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

// sendContinue sends the upstream's 100 Continue, unless the client already has one. net/http sends it when the body is
// first read, and the transport reads the body if the upstream has sent nothing for a second.
func (a *responseWriter) sendContinue() {
	if !a.request.ProtoAtLeast(1, 1) {
		return
	}
	if a.body == nil {
		a.ResponseWriter.WriteHeader(http.StatusContinue)
		return
	}
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	if !a.body.continued {
		a.body.continued = true
		a.ResponseWriter.WriteHeader(http.StatusContinue)
	}
}

// end makes net/http close the connection after a response that begins before the end of the request body. The rest of
// an incomplete body must not be read as another request.
func (a *responseWriter) end() {
	if a.body != nil && !a.body.ended.Load() {
		a.Header().Set("Connection", "close")
	}
}

// keep makes net/http send headers that it would remove. It finds them by their canonical names, so keep changes the
// case.
func keep(h http.Header, names ...string) {
	for _, name := range names {
		if values := h[name]; len(values) > 0 {
			h[strings.ToLower(name)] = values
			delete(h, name)
		}
	}
}

// Hijack implements [http.Hijacker]. The returned connection begins with the bytes that the client sent right after its
// request. The server has buffered them, and httputil.ReverseProxy ignores the buffer.
func (a *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffered, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	// Clone the bytes: a slice from Peek is valid only until the next read from the buffer.
	early, err := buffered.Peek(buffered.Reader.Buffered())
	return &switched{Conn: c, from: io.MultiReader(bytes.NewReader(bytes.Clone(early)), c)}, buffered, err
}

// switched is a client connection that has switched to another protocol.
type switched struct {
	net.Conn
	from io.Reader // buffered bytes, then Conn
}

// Read reads the buffered bytes first.
func (s *switched) Read(b []byte) (int, error) { return s.from.Read(b) }

// CloseWrite signals the client that the upstream has closed its side.
func (s *switched) CloseWrite() error {
	// TCP and TLS connections can close one direction, so the client may send the rest of its data. Other connections
	// are closed in both directions.
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Close()
}
