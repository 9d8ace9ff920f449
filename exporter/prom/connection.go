package prom

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/internal/clientip"
)

// ConnState is a hook for [http.Server].ConnState. It shows whether a response was read, so that a cursor sends again
// what was not:
//
//	server := &http.Server{Handler: mux, ConnState: seconds.ConnState}
//
// A server that has a hook already calls both. Set it before the server serves; several servers may have it, and other
// handlers may be served there, too. A change of state costs a look-up in a map, and an open connection some hundred
// bytes.
func (s *Seconds) ConnState(c net.Conn, state http.ConnState) {
	if s.conns.change(c, state) {
		s.save()
	}
}

// connections are the open TCP connections of servers that have the hook. net/http gives a handler no net.Conn, only
// the local address of its connection: [http.LocalAddrContextKey] is the pointer that LocalAddr returns in the hook,
// for TLS and for wrapped connections, too. It is no other connection's while this one is open, whereas ports are used
// again and middleware rewrites RemoteAddr.
type connections struct{ open sync.Map } // of *connection, by *net.TCPAddr

// connection is what the hook has shown of a connection.
type connection struct {
	net.Conn

	mu       sync.Mutex // guards what follows
	users    int        // open connections with this address
	shared   bool       // there were several, as a tunnel has them: nothing is known of any
	requests int        // that have begun
	state    http.ConnState
	since    time.Time     // when the state began
	idle     time.Duration // of a closed connection: how long it was idle before; 0 if it was not
	unsaved  bool          // the last response has moved a cursor
	changed  chan struct{} // closed at the next change; nil if no goroutine waits for it

	unproven *response // last response, if row 6 of [response] applied to it, until there is proof
	decided  time.Time // time of the verdict about unproven
}

// change records the state of a connection, and reports whether positions are to be saved.
func (k *connections) change(c net.Conn, state http.ConnState) (unsaved bool) {
	address, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok || c.LocalAddr() != net.Addr(address) { // a new one each time, of no handler's
		return false
	}
	if state == http.StateNew {
		k.open.LoadOrStore(address, &connection{Conn: c})
	}
	x := k.find(address)
	if x == nil {
		return false
	}
	unsaved, last, unread := x.change(state, time.Now())
	if last {
		k.open.Delete(address)
	}
	if unread != nil {
		unread.cursor.retract(unread.size)
	}
	return unsaved
}

// find returns the connection with an address, nil if the hook has not shown it.
func (k *connections) find(address *net.TCPAddr) *connection {
	c, _ := k.open.Load(address)
	x, _ := c.(*connection)
	return x
}

// change records a state. last reports whether the last connection with this address has ended. unread is the
// response of row 7 of [response], if the change is its evidence.
func (x *connection) change(state http.ConnState, now time.Time) (unsaved, last bool, unread *response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch state {
	case http.StateNew:
		x.users++
		x.shared = x.shared || x.users > 1
	case http.StateActive:
		x.requests++
		x.unproven = nil // the request is the proof
	default: // a response has ended, if there was one
		unsaved, x.unsaved = x.unsaved, false
	}
	if state == http.StateClosed && x.state == http.StateIdle {
		x.idle = max(now.Sub(x.since), 1)
		if now.Sub(x.decided) < closingEnd {
			unread, x.unproven = x.unproven, nil
		}
	}
	if state == http.StateClosed || state == http.StateHijacked {
		x.users--
	}
	x.state, x.since = state, now
	if x.changed != nil {
		close(x.changed)
		x.changed = nil
	}
	return unsaved, x.users == 0, unread
}

// nextChange returns a channel that is closed at the next change of the state.
func (x *connection) nextChange() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.changed == nil {
		x.changed = make(chan struct{})
	}
	return x.changed
}

// saveWhenIdle has positions saved when the present response has ended.
func (x *connection) saveWhenIdle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unsaved = true
}

// throughProxy reports whether a request came through a proxy, which reads for somebody else: one that names itself in
// a header, or one of the networks.
func throughProxy(r *http.Request, networks []netip.Prefix) bool {
	for name := range r.Header {
		switch name {
		case "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Request-Id":
			return true
		}
		if strings.HasPrefix(name, "X-Envoy-") {
			return true
		}
	}
	return clientip.In(networks, r.RemoteAddr)
}
