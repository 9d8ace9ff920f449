package prom

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// answer is what a reader was sent last. Whether it arrived shows when the reader comes again.
type answer struct {
	from, to int64 // its seconds
	samples  int
	remote   string
	conn     *conn // nil if it is not watched
	proxied  bool  // or HTTP/2, or no TCP: the same address is no proof
	began    time.Time
	timeout  time.Duration // the client's
	whole    bool          // all of it was written
}

// usualTimeout is the scrape timeout of a client that does not tell: the servers' default.
const usualTimeout = 10 * time.Second

const timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"

// newAnswer is an answer to a request that came at began, before anything is in it.
func newAnswer(r *http.Request, c *conn, began time.Time) *answer {
	_, _, notTCP := net.SplitHostPort(r.RemoteAddr)
	return &answer{
		remote: r.RemoteAddr, conn: c, proxied: r.ProtoMajor != 1 || proxied(r) || notTCP != nil, began: began, timeout: scrapeTimeout(r),
	}
}

// scrapeTimeout is how long the client waits.
func scrapeTimeout(r *http.Request) time.Duration {
	s, err := strconv.ParseFloat(r.Header.Get(timeoutHeader), 64)
	if err != nil || !(s > 0 && s < 3600) {
		return usualTimeout
	}
	return time.Duration(s * float64(time.Second))
}

// fate is what became of an answer.
type fate int

const (
	torn      fate = iota // it was not written whole: nobody has it
	lostTrack             // it was written whole, and then the connection broke or the client left
	assumed               // it was written whole, and nothing more is known
	read                  // the client has read it
)

// fate decides what became of the answer, when the reader's next request comes on another connection or the same.
func (a *answer) fate(next *answer) fate {
	switch {
	case !a.whole:
		return torn
	case a.proxied || next.proxied:
		return assumed
	case a.remote == next.remote && a.conn == next.conn:
		return read
	case a.conn == nil:
		return assumed
	}
	switch a.conn.ending() {
	case broken:
		return lostTrack
	case inOrder:
		return read
	case notEnded:
		if next.began.Sub(a.began) > a.timeout && unread(a.conn.Conn) {
			return lostTrack // the network between is cut, or was
		}
	}
	return assumed
}
