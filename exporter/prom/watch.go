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

// Watch returns a listener whose connections record how they were closed. A cursor needs that to send responses again that
// were written and never read:
//
//	listener, err := net.Listen("tcp", ":9719")
//	…
//	err = http.Serve(seconds.Watch(listener), mux)
//
// Other handlers may be served there too, and TLS may be put on top. It costs some hundred bytes for each connection.
func (s *Seconds) Watch(l net.Listener) net.Listener { return &listener{l, &s.conns} }

// listener adds the connections that it accepts to those that are watched.
type listener struct {
	net.Listener
	conns *conns
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.conns.add(c), nil
}

// conns are the open connections that are watched, by their addresses.
type conns struct{ open sync.Map }

// addresses identify an open TCP connection.
type addresses struct{ local, remote string }

func (k *conns) add(c net.Conn) net.Conn {
	w := &conn{Conn: c, conns: k, addresses: addresses{c.LocalAddr().String(), c.RemoteAddr().String()}}
	if _, _, err := net.SplitHostPort(w.addresses.remote); err != nil {
		return c // a Unix socket: all its connections have the same name
	}
	k.open.Store(w.addresses, w)
	return w
}

// find returns the connection of a request. It is nil if the connection is not watched, or proves nothing about the
// scraper: HTTP/2 has many requests at a time on it, and a proxy reads for somebody else.
func (k *conns) find(r *http.Request) *conn {
	if r.ProtoMajor != 1 || proxied(r) {
		return nil
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return nil
	}
	c, _ := k.open.Load(addresses{local.String(), r.RemoteAddr})
	w, _ := c.(*conn)
	return w
}

// proxied reports whether the headers of a request name a proxy.
func proxied(r *http.Request) bool {
	for _, name := range []string{"Via", "Forwarded", "X-Forwarded-For"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// conn is a connection that records how it was closed. Its methods accept a nil conn where a request may have none.
type conn struct {
	net.Conn
	conns     *conns
	addresses addresses

	mu      sync.Mutex // guards what follows
	closing connState
	request context.Context // of the last request
	onSent  func()          // called after the next write, which ends the response
}

// connState is how a connection was closed, if it was.
type connState int

const (
	connOpen           connState = iota
	connClosedByClient           // after it had read everything
	connBroken                   // reset, closed by the client in the middle of a response, or not writable
	connClosedByServer           // because the connection was idle, or the server shut down
)

// Read implements net.Conn. The server waits in it for the next request, and learns that there is none.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
	case errors.Is(err, io.EOF) && (c.serving() || unsent(c.Conn)):
		c.setState(connBroken)
	case errors.Is(err, io.EOF):
		c.setState(connClosedByClient)
	default:
		c.setState(connBroken)
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.setState(connBroken)
	} else if f := c.takeOnSent(); f != nil {
		f()
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.setState(connClosedByServer)
	c.conns.open.CompareAndDelete(c.addresses, c)
	return c.Conn.Close()
}

// setState records how the connection was closed. The first state stays: it is the cause of those that follow.
func (c *conn) setState(s connState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing == connOpen {
		c.closing = s
	}
}

func (c *conn) state() connState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// begin records the request that is served now.
func (c *conn) begin(r *http.Request) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request, c.onSent = r.Context(), nil
}

// afterResponse calls f when the last byte of the present response was written. That is the end of the last chunk, which
// the server writes after the handler has returned, and without which a client discards the response. Where there are no
// chunks or the connection is not watched, f is called at once.
func (c *conn) afterResponse(r *http.Request, f func()) {
	if c == nil || r.Method != http.MethodGet || !r.ProtoAtLeast(1, 1) {
		f()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onSent = f
}

// takeOnSent returns the function to call after a write, once.
func (c *conn) takeOnSent() (f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, c.onSent = c.onSent, nil
	return f
}

// serving reports whether a request is being served. Its context ends before the last bytes of the response are written, so
// the client cannot have all of it until then.
func (c *conn) serving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request != nil && c.request.Err() == nil
}
