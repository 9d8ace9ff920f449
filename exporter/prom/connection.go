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

// ConnState is a hook for [http.Server].ConnState. It shows whether a scraper has read its last response, so that
// unread seconds can be sent again:
//
//	server := &http.Server{Handler: mux, ConnState: seconds.ConnState}
//
// If a server already has a hook, call both. Set the hook before the server serves. Several servers may share it, and
// they may serve other handlers. A change of the state costs a map lookup, and an open connection some hundred bytes.
func (s *Seconds) ConnState(c net.Conn, state http.ConnState) {
	if s.conns.change(c, state) {
		s.save()
	}
}

// connections holds the open TCP connections of servers with the hook. A handler gets no net.Conn from net/http, only
// the local address: [http.LocalAddrContextKey] is the pointer that LocalAddr returns in the hook, also for TLS and
// wrapped connections. The pointer is unique while the connection is open. RemoteAddr would not identify the
// connection, because ports are reused and middleware rewrites it.
type connections struct{ open sync.Map } // *net.TCPAddr to *connection

// connection holds the states of a connection that the hook has reported.
type connection struct {
	net.Conn

	mu       sync.Mutex // guards the fields below
	users    int        // open connections with this address
	shared   bool       // users was more than 1, as in a tunnel, so the states prove nothing
	requests int        // number of requests that have begun
	state    http.ConnState
	since    time.Time     // when the state began
	idle     time.Duration // time for which a closed connection was idle before; 0 if it was active
	unsaved  bool          // the last response has advanced a cursor
	changed  chan struct{} // closed at the next change; nil if no goroutine waits for it

	unproven *response // response that row 6 of [response] acknowledged; nil after the next request
	decided  time.Time // time of the verdict about unproven
}

// change records the state of a connection, and reports whether positions must be saved.
func (k *connections) change(c net.Conn, state http.ConnState) (unsaved bool) {
	address, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok ||
		c.LocalAddr() != net.Addr(address) { // LocalAddr returns a different pointer each time, so no handler has it
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

// find returns the connection with an address, or nil if the hook has not reported it.
func (k *connections) find(address *net.TCPAddr) *connection {
	c, _ := k.open.Load(address)
	x, _ := c.(*connection)
	return x
}

// change records a state. unsaved reports whether positions must be saved. last reports whether the last connection
// with this address has ended. unread is a response that was acknowledged by row 6 of [response] and becomes
// unconfirmed by row 7, because the client has closed the connection. It is nil if row 7 does not apply.
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
	default: // a response may have ended
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

// saveWhenIdle requests that positions are saved when the current response has ended.
func (x *connection) saveWhenIdle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unsaved = true
}

// throughProxy reports whether a request came through a proxy: the proxy names itself in a header, or its address is in
// one of the networks. A proxy reads responses in place of the scraper.
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
