package prom

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/internal/netlimit"
)

// response is a response that was written completely, over a connection whose states the hook shows. The connection is the
// receipt. The next request of the cursor decides about the response before it gets a page: the first row that applies is its
// verdict. Nothing but the end of row 6 happens without a request.
//
//	   evidence                                        verdict       counter       price
//	1  a later request on the connection               acknowledged  delivered     none: HTTP/1.1 clients read a response to its
//	                                                                               end before they send the next request
//	2  two connections have one address, as in a       unconfirmed   unconfirmed   the database may lack the response
//	   tunnel
//	3  the connection broke, has bytes that the        broken: send  resent        comes twice if it was read after all;
//	   client's machine has not acknowledged, or the   again         (after six    half as large if it was large
//	   response is still being written                               times:
//	                                                                 unconfirmed)
//	4  the server closed the idle connection, after    unconfirmed   unconfirmed   the database may lack the response
//	   its IdleTimeout
//	5  the client closed the idle connection. A reset  left: send    resent        comes twice if it was read, as by a client
//	   proves that the response was not read. A FIN    again         (after six    that always closes its connections; such a
//	   proves nothing: Go's client reads 4 KiB ahead                 times, or     client gets each response at most twice
//	   of its caller, and a small response is shorter                two, as 3)
//	6  the connection is idle, and the client's        acknowledged  delivered     the next response waits for [closingWait];
//	   machine has every byte. The next request                      (unconfirmed  no proof: if the client closes the
//	   waits: a client whose scrape timed out closes                 if the        connection within [closingEnd], the
//	   the connection at about the time of its next                  client still  response is unconfirmed. It is not sent
//	   request, so rows 1 to 5 apply as soon as the                  closes)       again: later seconds were sent meanwhile,
//	   state changes, and the response was read if                                 and a Prometheus refuses older ones
//	   it does not
//
// Rows 5 and 6 decide where the timeout of a scrape equals its interval: the next request and the end of the connection then come
// in any order. Where the interval is longer, the connection ended before the next request, unless the client was suspended from
// before its timeout to after it; then both come when it continues, in any order. So the time of the timeout proves nothing, and
// row 6 counts from the request, which shows that the client runs.
//
// On systems other than Linux nobody knows what the client's machine has acknowledged; an idle connection counts as row 5.
// Where the connection cannot be a receipt there is no response, and its seconds are unconfirmed: HTTP/2, HTTP/1.0, Unix sockets,
// proxies, Connection: close, and servers without the hook. [Seconds.Save] decides by the same rows, without a next request: a
// client that was suspended before it read the response, and is for longer than its timeout, loses it in row 6.
type response struct {
	cursor      *cursor
	from, to    int64 // its seconds
	size        int64 // the number of its seconds
	samples     int
	conn        *connection
	request     int           // the number of its request on the connection
	idleTimeout time.Duration // of the server; 0 for none
}

// delivery is the verdict about a response that was written completely.
type delivery int

const (
	acknowledged delivery = iota // the client has read the response
	idle                         // everything has reached the client's machine, and the connection is idle: no verdict yet
	left                         // the client has closed the idle connection
	broken                       // the client has not read all of the response
	unconfirmed                  // nothing proves or disproves the receipt
)

// newResponse returns the response to a request, or nil if what becomes of its connection would prove nothing. It has no seconds
// yet.
func (s *Seconds) newResponse(w http.ResponseWriter, r *http.Request) *response {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || r.ProtoMajor != 1 || r.ProtoMinor == 0 || r.Close || w.Header().Get("Connection") != "" || throughProxy(r, s.opts.Proxies) {
		return nil
	}
	a := &response{conn: s.conns.find(address)}
	if a.conn == nil {
		return nil
	}
	a.conn.mu.Lock()
	defer a.conn.mu.Unlock()
	if a.conn.shared {
		return nil
	}
	a.request = a.conn.requests
	if s, _ := r.Context().Value(http.ServerContextKey).(*http.Server); s != nil {
		a.idleTimeout = cmp.Or(s.IdleTimeout, s.ReadTimeout)
	}
	return a
}

// delivery returns the verdict of the connection's state, or idle.
func (a *response) delivery() delivery {
	a.conn.mu.Lock()
	defer a.conn.mu.Unlock()
	return a.verdict()
}

// verdict implements [response.delivery]. conn.mu must be held.
func (a *response) verdict() delivery {
	c := a.conn
	switch {
	case c.shared:
		return unconfirmed // row 2
	case c.requests > a.request:
		return acknowledged // row 1
	case c.state == http.StateIdle:
		switch n, known := netlimit.Unacknowledged(c.Conn); {
		case !known: // on this system, or because it is being closed
			return left
		case n > 0:
			return broken // row 3
		case netlimit.PeerClosed(c.Conn):
			return left // row 5: net/http has not called the hook yet
		}
		return idle // row 6
	case c.idle > 0 && a.idleTimeout > 0 && c.idle >= a.idleTimeout/10*9:
		return unconfirmed // row 4
	case c.idle > 0:
		return left // row 5
	}
	return broken // row 3
}

const (
	// closingWait is the wait of row 6. In the e2e suite's TestClosing Go's client, Prometheus, VictoriaMetrics and vmagent close
	// connections at most CLOSING after their next request, with and without TLS, on busy processors.
	closingWait = 250 * time.Millisecond
	// closingEnd is the time after which the end of a connection does not belong to a scrape that timed out. Clients close idle
	// connections of their pools after minutes.
	closingEnd = 30 * time.Second
)

// await waits for d, or until changed is closed. It reports false if ctx ended before.
func await(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// decide returns the verdict about a response, after a wait of at most d if its connection is idle. It returns idle, which decides
// nothing, if ctx ends during the wait.
func (s *Seconds) decide(ctx context.Context, a *response, d time.Duration) delivery {
	changed := a.conn.nextChange()
	if v := a.delivery(); v != idle || !s.await(ctx, d, changed) {
		return v
	}
	a.conn.mu.Lock()
	defer a.conn.mu.Unlock()
	v := a.verdict()
	if v == idle { // row 6
		a.conn.unproven, a.conn.decided = a, time.Now()
		v = acknowledged
	}
	return v
}
