package prom

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// response is the last response sent to a scraper. Its delivery is decided when the next request comes.
type response struct {
	from, to int64 // its seconds
	samples  int
	remote   string
	conn     *conn // nil if the connection is not watched
	proxied  bool  // or HTTP/2, or not TCP: the same remote address proves nothing
	began    time.Time
	timeout  time.Duration // the client's scrape timeout
	complete bool          // the body was written without an error
}

// defaultScrapeTimeout is assumed for a client without a timeout header. It is the default of Prometheus and VictoriaMetrics.
const defaultScrapeTimeout = 10 * time.Second

const timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"

// newResponse returns the response to a request that arrived at began. It has no seconds yet.
func newResponse(r *http.Request, c *conn, began time.Time) *response {
	_, _, notTCP := net.SplitHostPort(r.RemoteAddr)
	return &response{
		remote: r.RemoteAddr, conn: c, proxied: r.ProtoMajor != 1 || proxied(r) || notTCP != nil, began: began, timeout: scrapeTimeout(r),
	}
}

// scrapeTimeout returns how long the client waits for the response.
func scrapeTimeout(r *http.Request) time.Duration {
	s, err := strconv.ParseFloat(r.Header.Get(timeoutHeader), 64)
	if err != nil || !(s > 0 && s < 3600) {
		return defaultScrapeTimeout
	}
	return time.Duration(s * float64(time.Second))
}

// delivery is what is known about the receipt of a response.
type delivery int

const (
	partial      delivery = iota // the body was not written completely: the scraper discards it
	unknown                      // written completely, then the connection broke or the client left: sent again
	unconfirmed                  // written completely, and nothing proves or disproves its receipt
	acknowledged                 // the client has read it
)

// delivery decides about a response when the scraper's next request arrives, on the same connection or another one.
func (a *response) delivery(next *response) delivery {
	switch {
	case !a.complete:
		return partial
	case a.proxied || next.proxied:
		return unconfirmed
	case a.remote == next.remote && a.conn == next.conn:
		return acknowledged
	case a.conn == nil:
		return unconfirmed
	}
	switch a.conn.state() {
	case connBroken:
		return unknown
	case connClosedByClient:
		return acknowledged
	case connOpen:
		if next.began.Sub(a.began) > a.timeout && unsent(a.conn.Conn) {
			return unknown // the network was cut
		}
	}
	return unconfirmed
}
