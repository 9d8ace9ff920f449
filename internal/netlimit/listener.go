// Package netlimit limits the connections of a server, in total and per host, and the time that a transfer may make no
// progress. A transfer that moves is never cut off, however slow it is.
//
//	l = netlimit.Listen(l, netlimit.Bounds{Conns: 1000, ConnsPerHost: 500, Stall: time.Minute})
//	server := &http.Server{
//		Handler:           netlimit.Bodies(handler, time.Minute),
//		ReadHeaderTimeout: 10 * time.Second,
//		IdleTimeout:       2 * time.Minute,
//	}
//	err := netlimit.Serve(l, server.Serve)
//
// http.Server has the deadlines of headers and idle connections. A connection without traffic while a handler runs, or
// after an upgrade, has no deadline; TCP's keep-alives end it if the client's machine has vanished. Other listeners and
// TLS may wrap the listener.
package netlimit

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/fairshare"
)

// Bounds are the limits of a listener. A zero field means no limit.
type Bounds struct {
	Conns        int           // open connections
	ConnsPerHost int           // open connections of one host: an IPv4 address or an IPv6 /64
	Stall        time.Duration // time that a write waits until the client takes a byte

	// Intake limits the bytes that clients send.
	Intake Intake

	// Proxies are the networks of proxies, which carry the connections of many clients. ConnsPerHost does not apply to
	// them, nor to Unix sockets, and their connections are evicted last.
	Proxies []netip.Prefix

	// OnEvict, if not nil, is called with the host of each connection that is closed in favor of a new one, or that is
	// refused. It must not block.
	OnEvict func(host netip.Prefix)
}

// isShared reports whether host carries the connections of many clients: a proxy or a Unix socket.
func (b *Bounds) isShared(host netip.Prefix) bool {
	return !host.IsValid() || slices.ContainsFunc(b.Proxies, func(p netip.Prefix) bool { return p.Overlaps(host) })
}

// Listen returns a listener whose connections keep to the bounds. If a host has more than ConnsPerHost after a new
// connection, the listener closes the connection of this host that has been without traffic longest. If there are more
// than Conns, it closes such a connection of the host with the most. A host that floods a server therefore evicts only
// its own connections.
//
// A new connection is in excess if it would evict one of its own host, or of a host with at most one more. Connections
// in excess replace others at a limited rate, a quarter of Conns per second; further ones are reset before they take a
// goroutine of the server. Hosts that reconnect in a loop therefore cost little. The first connection of a host is
// never refused, nor is one of a proxy or a Unix socket, which carry many clients.
//
// A read deadline that was set in the future and passes ends all reads of a connection, even if a later deadline is set
// afterwards. Closing the listener leaves its connections open. A connection takes a few hundred bytes, and an eviction
// takes a few microseconds, however many connections are open.
func Listen(l net.Listener, b Bounds) net.Listener {
	n := &listener{Listener: l, bounds: b, replaced: bucket{time.Since(epoch())}}
	if b.Intake != Unlimited {
		n.intake = newIntake(b)
	}
	n.open.Used = func(c *conn) int64 { return c.moved.Load() }
	return n
}

type listener struct {
	net.Listener
	bounds Bounds
	intake *intake // nil without a limit

	mu       sync.Mutex // guards the fields below and the holder of each connection
	open     fairshare.Table[netip.Prefix, *conn]
	replaced bucket // of the connections in excess that were accepted
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.accept(inner); c != nil {
			return c, nil
		}
	}
}

// accept returns a new connection with the bounds of l, or nil if it is in excess and was reset.
func (l *listener) accept(inner net.Conn) *conn {
	c, host := newConn(inner, l.bounds.Stall), hostOf(inner.RemoteAddr())
	out, ok := l.admit(c, host)
	if out != nil {
		_ = out.Value.abort()
		host = out.Host
	}
	if f := l.bounds.OnEvict; f != nil && (out != nil || !ok) {
		f(host)
	}
	if !ok {
		_ = c.abort()
		return nil
	}
	if tcp, ok := inner.(*net.TCPConn); ok { // the listener may leave this to Listen, see KeepAlive
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true})
	}
	if tcp, ok := inner.(interface{ SetReadBuffer(bytes int) error }); ok && l.bounds.Intake == LimitBytes {
		_ = tcp.SetReadBuffer(readBuffer)
	}
	return c
}

// KeepAlive is a value of [net.ListenConfig].KeepAlive for a listener that [Listen] wraps. Listen turns on keep-alives
// itself, only for connections that it accepts, which saves half of the system calls for the others.
const KeepAlive = time.Duration(-1)

// hostOf returns the host of an address, or the zero Prefix if a is not an IP address.
func hostOf(a net.Addr) netip.Prefix {
	if from, ok := a.(interface{ AddrPort() netip.AddrPort }); ok { // a TCPAddr
		return clientip.Network(from.AddrPort().Addr())
	}
	return netip.Prefix{}
}

// admit adds a connection of host, and returns the connection to close in return, or nil. It reports false if the new
// connection is refused.
func (l *listener) admit(c *conn, host netip.Prefix) (out *fairshare.Holder[netip.Prefix, *conn], ok bool) {
	shared := l.bounds.isShared(host)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch b := l.bounds; {
	case b.ConnsPerHost > 0 && l.open.Amount(host) >= b.ConnsPerHost && !shared:
		out = l.open.FirstOf(host)
	case b.Conns > 0 && l.open.Len() >= b.Conns:
		out = l.open.First()
	}
	if out != nil {
		has := l.open.Amount(host)
		excess := !shared && (out.Host == host || has > 0 && has+1 >= l.open.Amount(out.Host))
		if excess && !l.replace() {
			return nil, false
		}
		l.open.Remove(out)
	}
	if c.listener = l; l.intake != nil {
		c.reader = newReader()
	}
	c.holder = l.open.Add(host, 1, c)
	if shared {
		l.open.Rank(c.holder, 1)
	}
	return out, true
}

// replace reports whether a connection in excess may evict another one now. l.mu must be held.
func (l *listener) replace() bool {
	now, rate := time.Since(epoch()), max(1, cmp.Or(l.bounds.Conns, l.bounds.ConnsPerHost)/4)
	next := l.replaced.after(now, 1, rate)
	if next.full > now+time.Second { // the burst is what the rate allows in a second
		return false
	}
	l.replaced = next
	return true
}

// leave removes a closed connection.
func (l *listener) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open.Remove(c.holder)
}
