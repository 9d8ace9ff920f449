// Package netlimit limits the connections of a server, in total and per host, and the time that a transfer may make no
// progress. A transfer that moves is never cut off, however slow it is.
//
//	l = netlimit.Listen(l, netlimit.Bounds{Conns: 1000, ConnsPerHost: 500, Stall: time.Minute})
//	server := &http.Server{
//		Handler:           netlimit.Bodies(handler, time.Minute),
//		ReadHeaderTimeout: 10 * time.Second,
//		IdleTimeout:       2 * time.Minute,
//	}
//	err := server.Serve(l)
//
// http.Server has the deadlines of headers and idle connections. A connection without traffic while a handler runs, or
// after an upgrade, has no deadline; TCP's keep-alives end it if the client's machine has vanished. Other listeners and
// TLS may wrap the listener.
package netlimit

import (
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

	// Proxies are the networks of proxies, which carry the connections of many clients. ConnsPerHost does not apply to
	// them, nor to Unix sockets, and their connections are evicted last.
	Proxies []netip.Prefix

	// OnEvict, if not nil, is called with the host of each connection that is closed in favor of a new one. It must not
	// block.
	OnEvict func(host netip.Prefix)
}

// isShared reports whether host carries the connections of many clients: a proxy or a Unix socket.
func (b *Bounds) isShared(host netip.Prefix) bool {
	return !host.IsValid() || slices.ContainsFunc(b.Proxies, func(p netip.Prefix) bool { return p.Overlaps(host) })
}

// Listen returns a listener whose connections keep to the bounds. It accepts every new connection. If the host then has
// more than ConnsPerHost, the listener closes the connection of this host that has been without traffic longest. If
// there are more than Conns, it closes such a connection of the host with the most. A host that floods a server
// therefore evicts only its own connections.
//
// A read deadline that was set in the future and passes ends all reads of a connection, even if a later deadline is set
// afterwards. Closing the listener leaves its connections open. A connection takes a few hundred bytes, and an eviction
// takes a few microseconds, however many connections are open.
func Listen(l net.Listener, b Bounds) net.Listener {
	n := &listener{Listener: l, bounds: b}
	n.open.Used = func(c *conn) int64 { return c.moved.Load() }
	return n
}

type listener struct {
	net.Listener
	bounds Bounds

	mu   sync.Mutex // guards open and the holder of each connection
	open fairshare.Table[netip.Prefix, *conn]
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := newConn(inner, l.bounds.Stall)
	c.listener = l
	host := hostOf(inner.RemoteAddr())
	if out := l.admit(c, host); out != nil {
		_ = out.Value.abort()
		if f := l.bounds.OnEvict; f != nil {
			f(out.Host)
		}
	}
	return c, nil
}

// hostOf returns the host of an address, or the zero Prefix if a is not an IP address.
func hostOf(a net.Addr) netip.Prefix {
	if from, ok := a.(interface{ AddrPort() netip.AddrPort }); ok { // a TCPAddr
		return clientip.Network(from.AddrPort().Addr())
	}
	return netip.Prefix{}
}

// admit adds a connection of host, and returns the connection to close in return, or nil.
func (l *listener) admit(c *conn, host netip.Prefix) (out *fairshare.Holder[netip.Prefix, *conn]) {
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
		l.open.Remove(out)
	}
	c.holder = l.open.Add(host, 1, c)
	if shared {
		l.open.Rank(c.holder, 1)
	}
	return out
}

// leave removes a closed connection.
func (l *listener) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open.Remove(c.holder)
}
