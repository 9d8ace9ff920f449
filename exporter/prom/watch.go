package prom

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
)

// Watch returns a listener whose connections tell the page how they ended. It makes a cursor safe against answers that
// were written whole and never read:
//
//	listener, err := net.Listen("tcp", ":9719")
//	…
//	err = http.Serve(seconds.Watch(listener), mux)
//
// The page need not be the only thing that is served there, and TLS may be put on top. A connection costs some hundred
// bytes more.
func (s *Seconds) Watch(l net.Listener) net.Listener { return &listener{l, &s.conns} }

// listener makes connections known.
type listener struct {
	net.Listener
	known *conns
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.known.add(c), nil
}

// conns are the connections that are open and watched, by their two addresses.
type conns struct{ open sync.Map }

// endpoints tell a TCP connection from all others that are open.
type endpoints struct{ local, remote string }

func (k *conns) add(c net.Conn) net.Conn {
	w := &conn{Conn: c, known: k, ends: endpoints{c.LocalAddr().String(), c.RemoteAddr().String()}}
	if _, _, err := net.SplitHostPort(w.ends.remote); err != nil {
		return c // such as of a socket in the file system: all of them have one name
	}
	k.open.Store(w.ends, w)
	return w
}

// of is the connection of a request, nil if it is not watched or proves nothing about who reads the answer: there are
// many requests at a time on one of HTTP/2, and a proxy reads for somebody else.
func (k *conns) of(r *http.Request) *conn {
	if r.ProtoMajor != 1 || proxied(r) {
		return nil
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return nil
	}
	c, _ := k.open.Load(endpoints{local.String(), r.RemoteAddr})
	w, _ := c.(*conn)
	return w
}

// proxied reports whether a proxy says that it hands on the request.
func proxied(r *http.Request) bool {
	for _, name := range []string{"Via", "Forwarded", "X-Forwarded-For"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// conn is a connection that remembers how it ended.
type conn struct {
	net.Conn
	known *conns
	ends  endpoints

	mu      sync.Mutex      // guards what follows
	serving context.Context // of the last request
	sent    func()          // to be called after the next write, which is the end of its answer
	how     end
}

// end is how a connection ended.
type end int

const (
	notEnded  end = iota
	inOrder       // the client closed it when it had read everything
	broken        // it was reset, the client left before that, or something could not be written
	closedOff     // by the server, after the client kept it open without need
)

// Read implements net.Conn. It is where a server waits for the next request, and learns that there is none.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
	case errors.Is(err, io.EOF) && (c.busy() || unread(c.Conn)):
		c.end(broken)
	case errors.Is(err, io.EOF):
		c.end(inOrder)
	default:
		c.end(broken)
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.end(broken)
	} else if sent := c.last(); sent != nil {
		sent()
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.end(closedOff)
	c.known.open.CompareAndDelete(c.ends, c)
	return c.Conn.Close()
}

// end remembers how the connection ended; what is known first is the cause of what follows.
func (c *conn) end(how end) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.how == notEnded {
		c.how = how
	}
}

func (c *conn) ending() end {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.how
}

// serve says which request is being served.
func (c *conn) serve(r *http.Request) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving, c.sent = r.Context(), nil
}

// then has f called when the answer to the request that is being served was sent. Without the end of the last chunk, which
// is sent when its handler has returned, the client would not take it. Where there is no such end, or nobody sees it, f is
// called at once.
func (c *conn) then(r *http.Request, f func()) {
	if c == nil || r.Method != http.MethodGet || !r.ProtoAtLeast(1, 1) {
		f()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = f
}

// last is what is to be called after a write, if that was the one with the end of an answer.
func (c *conn) last() (sent func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, c.sent = c.sent, nil
	return sent
}

// busy reports whether a request is still being served. Its context ends before the client can have all of the answer:
// the last bytes are sent after that.
func (c *conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serving != nil && c.serving.Err() == nil
}
