package demo

import (
	"cmp"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/collector/httpstat"
)

// load sends the requests of one call of [Shop.Load].
type load struct {
	*Shop
	// base is the beginning of all URLs.
	base       string // http://host:port
	client     *http.Client
	slots      *semaphore.Weighted // one for each request in flight
	all        sync.WaitGroup      // goroutines of routes and of requests
	unanswered atomic.Int64        // requests without a response
}

// maxInFlight is the maximum number of requests in flight. If the shop hangs and the maximum is reached, the generator
// waits.
const maxInFlight = 1000

// A route with bursts sends all requests of ten seconds within the fifth of these seconds. A burst shows what averages
// over a longer time hide.
const (
	burstEvery = 10 * time.Second
	burstAt    = 4 * time.Second
)

// Load runs the incident and sends HTTP requests to the shop at base, http://host:port, until ctx ends. Requests are
// sent at a fixed rate, even if earlier ones have no response yet, as by many independent clients. Load waits for the
// requests in flight, and returns the number of requests without a response.
func (s *Shop) Load(ctx context.Context, base string, transport http.RoundTripper) (unanswered int64) {
	l := &load{
		Shop: s, base: base, slots: semaphore.NewWeighted(maxInFlight),
		client: &http.Client{Transport: transport, Timeout: time.Minute},
	}
	defer l.client.CloseIdleConnections()
	l.all.Go(func() { s.incident.run(ctx, s.stats, s.Limits(), s.rate) })
	for _, r := range s.routes {
		l.all.Go(func() { l.run(ctx, r) })
	}
	l.all.Wait()
	return l.unanswered.Load()
}

// run sends the requests of a route until ctx ends. If the machine cannot send at the rate, delayed requests of at most
// a tenth of a second are sent later; the others are omitted.
func (l *load) run(ctx context.Context, r route) {
	perSecond := l.rate * r.share
	if r.burst {
		perSecond *= burstEvery.Seconds()
	}
	// The limiter admits the requests of a tenth of a second together. After a pause of the machine, this number of
	// delayed requests is sent immediately, and the other delayed requests are omitted.
	due := rate.NewLimiter(rate.Limit(perSecond), max(int(perSecond/10), 1))
	for begin := time.Now(); ; {
		if at := time.Since(begin) % burstEvery; r.burst && (at < burstAt || at >= burstAt+time.Second) {
			if !sleep((burstAt-at+burstEvery)%burstEvery, ctx.Done()) {
				return
			}
			due.AllowN(time.Now(), due.Burst()) // requests between bursts are not due
		}
		// First wait until a request is due, then for a slot. A slot stays occupied until the response is complete.
		if due.Wait(ctx) != nil || l.slots.Acquire(ctx, 1) != nil {
			return
		}
		l.all.Go(func() { l.send(r); l.slots.Release(1) })
	}
}

// clients has the names of clients. A request has a random one, so web has half of the requests.
var clients = []string{"web", "web", "web", "mobile", "mobile", "partner"}

// clientHeader is the header with the name of the client, the origin of the call.
const clientHeader = "X-Client"

// send sends a request and counts the response. In the incident retries, it sends a failed request again immediately,
// up to three times.
func (l *load) send(r route) {
	attempts := 1
	if l.incident.active(retries) {
		attempts = 4
	}
	for range attempts {
		status, err := l.request(r)
		if err != nil {
			// Do not send the request again: a second attempt could be counted in addition to the first one.
			l.unanswered.Add(1) // whether the service has counted it is unknown
			return
		}
		// A status 429 means that a limit refused the request. The generator does not retry such a request.
		failed := status >= http.StatusInternalServerError
		l.sent.count(cmp.Or(r.pattern, httpstat.Unmatched), status == http.StatusTooManyRequests, failed)
		if !failed {
			return
		}
	}
}

// request sends a request and returns the status of the response. It reads the complete response, because the
// connection can be reused only then.
func (l *load) request(r route) (status int, err error) {
	req, err := http.NewRequest(r.method, l.base+r.path(), http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set(clientHeader, clients[rand.IntN(len(clients))])
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	return resp.StatusCode, nil
}
