package netlimit

import (
	"net"
	"net/netip"
	"sync"

	"github.com/windowstat/windowstat/internal/clientip"
)

// hostOf is the host of an address; what is no IP address has the zero Prefix.
func hostOf(a net.Addr) netip.Prefix {
	if from, ok := a.(interface{ AddrPort() netip.AddrPort }); ok { // a TCPAddr
		return clientip.Network(from.AddrPort().Addr())
	}
	return netip.Prefix{}
}

// places are the open connections, by their hosts.
type places struct {
	bounds Bounds

	mu    sync.Mutex // guards what follows
	hosts map[netip.Prefix]*host
	n     int // connections
}

// host is one that has connections.
type host struct {
	many  bool // clients come through it
	conns map[*conn]bool
}

// take gives a connection a place. If that is another's, it returns that one, which has none any more.
func (p *places) take(c *conn) (out *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[c.host]
	switch b := p.bounds; {
	case h != nil && b.ConnsPerHost > 0 && len(h.conns) >= b.ConnsPerHost && !h.many:
		out = longestIdle(nil, h)
	case b.Conns > 0 && p.n >= b.Conns:
		out = p.ofMost()
	}
	if out != nil {
		p.remove(out)
	}
	if h = p.hosts[c.host]; h == nil {
		h = &host{many: p.bounds.has(c.host), conns: map[*conn]bool{}}
		p.hosts[c.host] = h
	}
	h.conns[c] = true
	p.n++
	return out
}

// leave gives the place of a connection back, if it has one.
func (p *places) leave(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(c)
}

func (p *places) remove(c *conn) {
	h := p.hosts[c.host]
	if h == nil || !h.conns[c] {
		return
	}
	delete(h.conns, c)
	p.n--
	if len(h.conns) == 0 {
		delete(p.hosts, c.host)
	}
}

// ofMost is the longest idle connection of the hosts that have most.
func (p *places) ofMost() (out *conn) {
	var most *host
	for _, h := range p.hosts {
		if most == nil || h.before(most) {
			most = h
		}
	}
	for _, h := range p.hosts {
		if !most.before(h) {
			out = longestIdle(out, h)
		}
	}
	return out
}

// before reports whether a host gives way before another.
func (h *host) before(other *host) bool {
	if h.many != other.many {
		return other.many
	}
	return len(h.conns) > len(other.conns)
}

// longestIdle is c, if it is not nil, or one of the host.
func longestIdle(c *conn, h *host) *conn {
	for k := range h.conns {
		if c == nil || k.moved.Load() < c.moved.Load() {
			c = k
		}
	}
	return c
}
