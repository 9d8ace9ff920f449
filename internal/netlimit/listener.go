// Package netlimit keeps the doors of a server from being held: how many connections are open, in all and of each host, and
// how long a transfer may make no progress. An honest client meets none of it: what moves, however slowly, goes on.
//
//	l = netlimit.Listen(l, netlimit.Bounds{Conns: 1000, ConnsPerHost: 500, Stall: time.Minute})
//	server := &http.Server{
//		Handler:           netlimit.Bodies(handler, time.Minute),
//		ReadHeaderTimeout: 10 * time.Second,
//		IdleTimeout:       2 * time.Minute,
//	}
//	err := server.Serve(l)
//
// Headers and idle connections have the deadlines of http.Server. What a connection is silent about while a response is made
// or after an upgrade has none: the machine of a client that has vanished stops to answer TCP's keep-alives. Other listeners
// and TLS may be put on top.
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

// Bounds are what a listener allows. A field that is zero bounds nothing.
type Bounds struct {
	Conns        int           // how many connections are open
	ConnsPerHost int           // how many of them may be of one host, which is an IPv4 address or a /64 of IPv6
	Stall        time.Duration // how long a write may wait until the client takes a byte

	// Proxies are the networks of hosts that many clients come through. ConnsPerHost is not for them, and neither is it for
	// Unix sockets. They are the last that give way.
	Proxies []netip.Prefix

	// OnEvict is called with the host of each connection that is closed in favour of a new one, unless it is nil. It must not block.
	OnEvict func(host netip.Prefix)
}

// has reports whether many clients come through a host.
func (b *Bounds) has(host netip.Prefix) bool {
	return !host.IsValid() || slices.ContainsFunc(b.Proxies, func(p netip.Prefix) bool { return p.Overlaps(host) })
}

// Listen returns a listener whose connections keep to the bounds. A new connection always gets in. One that is over
// ConnsPerHost takes the place of the one of its host on which no byte has moved for the longest time, and one that is over
// Conns takes such a place from the host that has most: so a host that floods a server pushes out its own connections.
//
// A deadline for reads that passes, having been set for the future, ends them for good, even if another is set afterwards.
// Closing the listener leaves connections open. A connection takes some hundred bytes, and making room a few microseconds
// however many are open.
func Listen(l net.Listener, b Bounds) net.Listener {
	n := &listener{Listener: l, bounds: b}
	n.open.Used = func(c *conn) int64 { return c.moved.Load() }
	return n
}

type listener struct {
	net.Listener
	bounds Bounds

	mu   sync.Mutex // guards open, and the holder of each connection
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

// hostOf is the host of an address; what is no IP address has the zero Prefix.
func hostOf(a net.Addr) netip.Prefix {
	if from, ok := a.(interface{ AddrPort() netip.AddrPort }); ok { // a TCPAddr
		return clientip.Network(from.AddrPort().Addr())
	}
	return netip.Prefix{}
}

// admit lets a connection of a host in, and returns the one that makes room for it, nil if none has to.
func (l *listener) admit(c *conn, host netip.Prefix) (out *fairshare.Holder[netip.Prefix, *conn]) {
	many := l.bounds.has(host)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch b := l.bounds; {
	case b.ConnsPerHost > 0 && l.open.Amount(host) >= b.ConnsPerHost && !many:
		out = l.open.FirstOf(host)
	case b.Conns > 0 && l.open.Len() >= b.Conns:
		out = l.open.First()
	}
	if out != nil {
		l.open.Remove(out)
	}
	c.holder = l.open.Add(host, 1, c)
	if many {
		l.open.Rank(c.holder, 1)
	}
	return out
}

// leave ends what a connection counts for.
func (l *listener) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open.Remove(c.holder)
}
