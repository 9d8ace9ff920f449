package prom

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/windowstat/windowstat/internal/clienthost"
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

// find returns the connection of a request, nil if it is not watched.
func (k *conns) find(r *http.Request) *conn {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return nil
	}
	c, _ := k.open.Load(addresses{local.String(), r.RemoteAddr})
	w, _ := c.(*conn)
	return w
}

// proxies are the networks of proxies that do not name themselves in a header.
type proxies []netip.Prefix

// has reports whether a request came through a proxy, which reads for somebody else.
func (p proxies) has(r *http.Request) bool {
	for _, name := range []string{"Via", "Forwarded", "X-Forwarded-For"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return clienthost.In(p, r.RemoteAddr)
}

// conn is a connection that records what became of it after a response. Its methods accept a nil conn where a request may have
// none.
type conn struct {
	net.Conn
	conns     *conns
	addresses addresses

	mu      sync.Mutex    // guards what follows
	request *http.Request // of the last response
	after   *aftermath    // of the last response
	onSent  func()        // called after the next write, which ends the response
	goodbye bool          // something came after the response, over TLS
}

// aftermath is what became of a connection after a response.
type aftermath struct {
	state   connState
	at      time.Time     // when that was known
	written time.Time     // the last write before
	decided chan struct{} // closed then
	then    func()        // called before; may be nil
}

// connState is what became of a connection.
type connState int

const (
	connOpen           connState = iota
	connUsedAgain                // for another request: the client had read the response
	connClosedByClient           // after its machine had received everything
	connBroken                   // reset, closed by the client in the middle of a response, or not writable
	connClosedByServer           // because the connection was idle, or the server shut down
)

// Read implements net.Conn. The server waits in it for the next request, and learns that there is none.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
	case err == nil:
		c.received(n)
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
	c.wrote(time.Now())
	if err != nil {
		c.setState(connBroken)
	} else if f := c.takeOnSent(); f != nil {
		f()
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if c.toldGoodbye() { // by TLS, whereupon the server closes before it sees how the client does
		const soon = 100 * time.Millisecond
		_ = c.SetReadDeadline(time.Now().Add(soon))
		_, _ = c.Read(make([]byte, 1))
	}
	c.setState(connClosedByServer)
	c.conns.open.CompareAndDelete(c.addresses, c)
	return c.Conn.Close()
}

// setState records what became of the connection. The first state stays: it is the cause of those that follow.
func (c *conn) setState(s connState) {
	c.mu.Lock()
	a := c.after
	if a == nil || a.state != connOpen {
		c.mu.Unlock()
		return
	}
	a.state, a.at = s, time.Now()
	c.mu.Unlock()
	if a.then != nil {
		a.then()
	}
	close(a.decided)
}

// wrote records when something was written last.
func (c *conn) wrote(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.after; a != nil && a.state == connOpen {
		a.written = at
	}
}

// became returns what became of the connection after a response.
func (c *conn) became(a *aftermath) aftermath {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *a
}

// begin records the request that is served now, and returns what is to become of the connection afterwards. It calls then, if
// that is not nil, when it is known.
func (c *conn) begin(r *http.Request, then func()) *aftermath {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request, c.onSent, c.goodbye = r, nil, false
	c.after = &aftermath{decided: make(chan struct{}), then: then}
	return c.after
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

// received notes that n bytes came. After a response they are another request, or with TLS the goodbye.
func (c *conn) received(n int) {
	if n == 0 || c.serving() {
		return
	}
	c.mu.Lock()
	c.goodbye = c.request != nil && c.request.TLS != nil
	goodbye := c.goodbye
	c.mu.Unlock()
	if !goodbye {
		c.setState(connUsedAgain)
	}
}

// toldGoodbye reports whether the client may have said over TLS that it leaves, and no more is known yet.
func (c *conn) toldGoodbye() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.goodbye && c.after != nil && c.after.state == connOpen
}

// serving reports whether a request is being served. Its context ends before the last bytes of the response are written, so
// the client cannot have all of it until then.
func (c *conn) serving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request != nil && c.request.Context().Err() == nil
}
