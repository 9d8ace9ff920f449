package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
)

// answer is the upstream's, to which the server adds nothing of its own.
type answer struct {
	http.ResponseWriter
	body *clientBody // of the request, if it has one
}

// Unwrap lets http.ResponseController reach the wrapped writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader sends the upstream's headers. The server would add a date and a guess of the content's type if they are not there, so they
// are there without a value; and it leaves out those of a 304 that tell of the body that is not sent.
func (a *answer) WriteHeader(status int) {
	if h := a.Header(); status >= http.StatusOK {
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

// end has the connection closed after an answer that begins before the end of the request. What comes after a body that is
// broken must not be taken for another request.
func (a *answer) end() {
	if a.body != nil && !a.body.ended.Load() {
		a.Header().Set("Connection", "close")
	}
}

// keep has the server send headers that it leaves out: it knows them by their canonical names only.
func keep(h http.Header, names ...string) {
	for _, name := range names {
		if values := h[name]; len(values) > 0 {
			h[strings.ToLower(name)] = values
			delete(h, name)
		}
	}
}

// Hijack implements [http.Hijacker]. What the client has sent right after its request is read from the connection, too: the reverse proxy
// does not look into the buffer.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffered, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, err := buffered.Peek(buffered.Reader.Buffered())
	return &switched{Conn: c, from: io.MultiReader(bytes.NewReader(bytes.Clone(early)), c)}, buffered, err
}

// switched is a client's connection that has changed its protocol.
type switched struct {
	net.Conn
	from io.Reader
}

// Read reads what came early first.
func (s *switched) Read(b []byte) (int, error) { return s.from.Read(b) }

// CloseWrite tells the client that the upstream has ended its side.
func (s *switched) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Close()
}

// clientBody is a request's body that remembers how it went.
type clientBody struct {
	io.ReadCloser
	ended, broken, stalled atomic.Bool

	trailer, announced http.Header // as they come, and those that may
}

// newClientBody returns the body of a request, whose trailers are those that its headers have announced. None says who asks.
func newClientBody(r *http.Request) *clientBody {
	maps.DeleteFunc(r.Trailer, func(name string, _ []string) bool { return saysWhoAsks(name) })
	return &clientBody{ReadCloser: r.Body, trailer: r.Trailer, announced: maps.Clone(r.Trailer)}
}

// Read reads the body, and remembers whose fault an end is: a client that broke off, or one that sends nothing any more. Trailers are
// complete with the end; net/http has added those that nobody announced, which the upstream must not get.
func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil, errors.Is(err, http.ErrBodyReadAfterClose):
	case err == io.EOF:
		b.ended.Store(true)
		maps.DeleteFunc(b.trailer, func(name string, _ []string) bool {
			_, announced := b.announced[name]
			return !announced
		})
	default:
		b.stalled.Store(errors.Is(err, os.ErrDeadlineExceeded))
		b.broken.Store(true)
	}
	return n, err
}
