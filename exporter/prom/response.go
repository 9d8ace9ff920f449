package prom

import (
	"context"
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
	after    *aftermath
	proxied  bool // or HTTP/2, or not TCP: nothing about the connection proves anything
	began    time.Time
	timeout  time.Duration // the client's scrape timeout
	complete bool          // the body was written without an error
}

// defaultScrapeTimeout is assumed for a client without a timeout header. It is the default of Prometheus and VictoriaMetrics.
const defaultScrapeTimeout = 10 * time.Second

const timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"

// newResponse returns the response to a request that arrived at began. It has no seconds yet.
func (s *Seconds) newResponse(r *http.Request, began time.Time) *response {
	_, _, notTCP := net.SplitHostPort(r.RemoteAddr)
	a := &response{
		remote: r.RemoteAddr, proxied: r.ProtoMajor != 1 || notTCP != nil || s.proxies.has(r), began: began, timeout: scrapeTimeout(r),
	}
	if !a.proxied {
		a.conn = s.conns.find(r)
	}
	return a
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
	unknown                      // written completely, and the client may have discarded it: sent again
	unconfirmed                  // written completely, and nothing proves or disproves its receipt
	acknowledged                 // the client has read it
)

// delivery decides about a response when the scraper's next request arrives, on the same connection or another one.
//
// A client that has read a response keeps the connection and uses it again, or closes it at once. So a connection that ended
// when the scrape timed out, or that is idle while the client opens another one, means that the response was discarded. Wait
// before, because the next scrape may be faster than the end of the connection that timed out.
func (a *response) delivery(next *response) delivery {
	switch {
	case !a.complete:
		return partial
	case a.proxied || next.proxied:
		return unconfirmed
	case a.remote == next.remote && a.conn == next.conn:
		return acknowledged
	case a.after == nil:
		return unconfirmed
	}
	switch state := a.conn.became(a.after).state; {
	case a.discarded(), state == connOpen:
		return unknown
	case state == connClosedByServer:
		return unconfirmed
	}
	return acknowledged
}

// discarded reports whether the connection ended in a way in which the client may have discarded the response: it broke, or the
// client closed it as the scrape timed out, with the end of the response just received. By the server's clock that is a little
// earlier or later.
func (a *response) discarded() bool {
	x := a.conn.became(a.after)
	took := x.at.Sub(a.began)
	timedOut := took >= a.timeout-a.timeout/10 && took <= a.timeout+time.Second
	return x.state == connBroken || x.state == connClosedByClient && timedOut && x.at.Sub(x.written) < time.Second
}

// wait waits for the end of the connection of a response, if another one is in use now. It does not wait for long, nor at all
// where the end proves nothing.
func (a *response) wait(ctx context.Context, next *response) {
	if a == nil || !a.complete || a.proxied || next.proxied || a.after == nil || a.conn == next.conn {
		return
	}
	late := time.NewTimer(min(next.timeout/10, time.Second))
	defer late.Stop()
	select {
	case <-a.after.decided:
	case <-late.C:
	case <-ctx.Done():
	}
}
