package netlimit

import (
	"net"
	"net/netip"
	"sync"
	"testing"
)

// dials is a listener for connections that a test makes.
type dials struct {
	conns chan net.Conn
	close sync.Once
}

func newDials() *dials { return &dials{conns: make(chan net.Conn)} }

func (d *dials) Accept() (net.Conn, error) {
	if c, ok := <-d.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (d *dials) Close() error   { d.close.Do(func() { close(d.conns) }); return nil }
func (d *dials) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects from an address and returns the client's end.
func (d *dials) dial(from string) net.Conn {
	client, server := net.Pipe()
	d.conns <- &fromAddress{server, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 1))}
	return client
}

type fromAddress struct {
	net.Conn
	remote net.Addr
}

func (c *fromAddress) RemoteAddr() net.Addr { return c.remote }

// accept connects from an address and returns the server's end, or nil if the connection is refused.
func accept(t *testing.T, l net.Listener, from string) *conn {
	t.Helper()
	d := l.(*listener).Listener.(*dials)
	go d.dial(from)
	return l.(*listener).accept(<-d.conns)
}
