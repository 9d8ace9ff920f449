package prom

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/internal/netlimit"
)

// response is a response that was written completely, over a connection whose states the hook shows. The connection is
// the receipt. The next request of the cursor decides about the response before the request gets a page. The first row
// that applies is the verdict:
//
//	   evidence                                  verdict             counter      price
//	1  Several connections have one address,     unconfirmed         unconfirmed  The database may lack it.
//	   as in a tunnel.
//	2  The connection has begun a later          acknowledged        delivered    None: a client reads a response
//	   request.                                                                   to its end before it sends the
//	                                                                              next request.
//	3  The connection broke, has bytes that      broken: send again  resent       It comes twice if the client had
//	   the client's machine has not                                               read it. After maxTries it is
//	   acknowledged, or the response is                                           unconfirmed.
//	   not written yet.
//	4  The server closed the idle connection     unconfirmed         unconfirmed  The database may lack it.
//	   after its IdleTimeout.
//	5  The client closed the idle connection.    left: send again    resent       As 3. A client that always closes
//	                                                                              gets each response at most twice.
//	6  The connection is idle, and the client's  acknowledged        delivered    The next response waits for
//	   machine has every byte, for all of                                         closingWait.
//	   closingWait.
//	7  Row 6, and then the client closes the     acknowledged, then  unconfirmed  The database may lack it.
//	   connection within closingEnd, before      unconfirmed
//	   a later request.
//
// Row 2: since Go 1.27 a client in Go may send another request while up to 256 KiB of the response are unread.
//
// Row 5: a client closes the connection of a scrape that timed out. A reset proves that the client did not read the
// response. A FIN proves nothing: Go's client reads 4 KiB ahead of its caller, so it may have all of a small response
// and discard it. Both count as unread.
//
// Rows 5 to 7 are for scrapes whose timeout equals their interval. If such a scrape times out, the end of the
// connection and the next request arrive at the same time, in any order. If the interval is longer, the end arrives
// first, unless the client is suspended until its next request is due. Because of such clients, a connection that is
// idle after the timeout proves nothing. Row 6 therefore counts from the next request, which shows that the client
// runs. If the state of the connection changes during the wait, rows 1 to 5 apply. In row 7 the response is not sent
// again: later seconds were sent in the meantime, and Prometheus refuses older ones.
//
// Systems other than Linux do not show which bytes were acknowledged, so row 5 applies to all idle connections there.
// Some connections cannot be a receipt: HTTP/2, HTTP/1.0, Unix sockets, proxies, Connection: close, and servers without
// the hook. They have no response value, and their seconds are unconfirmed. [Seconds.Save] decides by the same rows
// without a next request. Row 6 is wrong about a client that is suspended before it reads the response, and until its
// scrape times out: the client loses the response.
type response struct {
	cursor      *cursor
	from, to    int64 // its seconds
	size        int64 // the number of its seconds
	samples     int
	conn        *connection
	request     int           // the number of its request on the connection
	idleTimeout time.Duration // of the server; 0 for none
}

// verdict says whether the client has read a response that was written completely.
type verdict int

const (
	acknowledged verdict = iota // the client has read the response
	idle                        // no verdict yet: the connection is idle, and every byte acknowledged
	left                        // the client has closed the idle connection
	broken                      // the client has not read all of the response
	unconfirmed                 // nothing proves or disproves the receipt
)

// newResponse returns the response to a request, or nil if its connection cannot prove the receipt. The response has
// no seconds yet.
func (s *Seconds) newResponse(w http.ResponseWriter, r *http.Request) *response {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || r.ProtoMajor != 1 || r.ProtoMinor == 0 || r.Close || w.Header().Get("Connection") != "" ||
		throughProxy(r, s.opts.Proxies) {
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

// verdict returns the verdict of the connection's state, or idle.
func (a *response) verdict() verdict {
	a.conn.mu.Lock()
	defer a.conn.mu.Unlock()
	return a.verdictLocked()
}

// verdictLocked implements verdict. conn.mu must be held.
func (a *response) verdictLocked() verdict {
	c := a.conn
	switch {
	case c.shared:
		return unconfirmed // row 1
	case c.requests > a.request:
		return acknowledged // row 2
	case c.state == http.StateIdle:
		switch n, known := netlimit.Unacknowledged(c.Conn); {
		case !known: // on this system, or because it is being closed
			return left
		case n > 0:
			return broken // row 3
		case netlimit.PeerClosed(c.Conn):
			return left // row 5: net/http has not called the hook yet
		}
		return idle // rows 6 and 7
	case c.idle > 0 && a.idleTimeout > 0 && c.idle >= a.idleTimeout/10*9:
		return unconfirmed // row 4
	case c.idle > 0:
		return left // row 5
	}
	return broken // row 3
}

const (
	// closingWait is the wait of row 6, at most a quarter of the scrape timeout. TestClosing of the e2e suite measures
	// that Go's client, Prometheus, VictoriaMetrics and vmagent close connections at most 3 ms after their next
	// request, with and without TLS. This is true while four loops compete for each processor, and while the client
	// runs for a tenth of the time. In a service whose own goroutines compute, net/http notices the end up to a second
	// later, but [netlimit.PeerClosed] does not depend on net/http.
	closingWait = 250 * time.Millisecond
	// closingEnd is the time after which row 7 no longer applies, because pools close idle connections, too: those of
	// Prometheus after five minutes, those of VictoriaMetrics after two scrape intervals. VictoriaMetrics leaves a
	// connection only when its configuration changes; the last response then falls under row 7 although it was read.
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

// decide returns the verdict about a response, after a wait of at most d if its connection is idle. It returns idle,
// which decides nothing, if ctx ends during the wait.
func (s *Seconds) decide(ctx context.Context, a *response, d time.Duration) verdict {
	changed := a.conn.nextChange()
	if v := a.verdict(); v != idle || !s.await(ctx, d, changed) {
		return v
	}
	a.conn.mu.Lock()
	defer a.conn.mu.Unlock()
	v := a.verdictLocked()
	if v == idle { // row 6; conn watches for row 7
		a.conn.unproven, a.conn.decided = a, time.Now()
		v = acknowledged
	}
	return v
}
