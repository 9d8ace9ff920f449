package prom

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/internal/netlimit"
)

// response is the last response sent to a scraper over a connection that the hook shows. Its delivery is decided when the
// scraper asks again.
type response struct {
	from, to    int64 // its seconds
	samples     int
	conn        *connection
	request     int           // the number of its request on the connection
	idleTimeout time.Duration // of the server; 0 for none
}

// delivery is what is known about the receipt of a response that was written completely.
type delivery int

const (
	acknowledged delivery = iota // the client has read it
	idle                         // everything has reached the client's machine, and the connection is idle
	left                         // the client has closed the idle connection
	broken                       // the client has not read all of it
	unconfirmed                  // nothing proves or disproves its receipt
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

// delivery decides by what has become of the connection. A client that has read a response uses the connection again or keeps
// it, and one that has not closes it. But to the server a connection is idle as soon as the last byte is in the buffers of its
// own machine: the network may be cut, or the client may stand still and close the connection when it goes on. So an idle
// connection proves something only if it stays so while the client asks again, see [Seconds.decide].
func (a *response) delivery() delivery {
	c := a.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.shared:
		return unconfirmed
	case c.requests > a.request:
		return acknowledged
	case c.state == http.StateIdle:
		switch n, known := netlimit.Unacknowledged(c.Conn); {
		case !known: // on this system, or because it is being closed
			return left
		case n > 0:
			return broken
		}
		return idle
	case c.idle > 0 && a.idleTimeout > 0 && c.idle >= a.idleTimeout/10*9:
		return unconfirmed // the server has closed it
	case c.idle > 0:
		return left
	}
	return broken // or still being written
}

// stays is how long a connection must stay idle while the client asks by another one. A client whose scrape has timed out asks
// again at about the same time as it closes the connection.
const stays = 50 * time.Millisecond

// stay waits for that long, and reports whether it has.
func stay(ctx context.Context) bool { return background.Sleep(ctx, stays) }

// decide returns the delivery, after a wait if the connection is idle. It stays idle, which decides nothing, if ctx ends meanwhile.
func (s *Seconds) decide(ctx context.Context, a *response) delivery {
	d := a.delivery()
	if d == idle && s.stay(ctx) {
		if d = a.delivery(); d == idle {
			d = acknowledged
		}
	}
	return d
}
