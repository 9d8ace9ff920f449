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

// load is one run of [Shop.Load].
type load struct {
	*Shop
	base       string // http://host:port
	client     *http.Client
	slots      *semaphore.Weighted // bounds the requests in flight
	all        sync.WaitGroup
	unanswered atomic.Int64
}

// maxInFlight is the maximum number of requests in flight. At the maximum, the generator waits.
const maxInFlight = 1000

// A burst takes the fifth of every ten seconds.
const (
	burstEvery = 10 * time.Second
	burstAt    = 4 * time.Second
)

// Load runs the incident and sends HTTP requests to the shop at base, http://host:port, until ctx ends. The rate does
// not depend on the response times. Load returns when all requests have ended, with the number of requests without a
// response.
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

// run sends the requests of a route until ctx ends. If the machine cannot reach the rate, at most a tenth of a second
// of delayed requests is sent later.
func (l *load) run(ctx context.Context, r route) {
	perSecond := l.rate * r.share
	if r.burst {
		perSecond *= burstEvery.Seconds()
	}
	due := rate.NewLimiter(rate.Limit(perSecond), max(int(perSecond/10), 1))
	for begin := time.Now(); ; {
		if at := time.Since(begin) % burstEvery; r.burst && (at < burstAt || at >= burstAt+time.Second) {
			if !sleep((burstAt-at+burstEvery)%burstEvery, ctx.Done()) {
				return
			}
			due.AllowN(time.Now(), due.Burst()) // requests between bursts are not due
		}
		if due.Wait(ctx) != nil || l.slots.Acquire(ctx, 1) != nil {
			return
		}
		l.all.Go(func() { l.send(r); l.slots.Release(1) })
	}
}

// clients has the values of clientHeader in requests, by frequency.
var clients = []string{"web", "web", "web", "mobile", "mobile", "partner"}

// clientHeader is the header with the name of the client.
const clientHeader = "X-Client"

// send sends a request and counts the response. In the incident retries, it repeats a failed request three times.
func (l *load) send(r route) {
	attempts := 1
	if l.incident.active(retries) {
		attempts = 4
	}
	for range attempts {
		status, err := l.request(r)
		if err != nil {
			l.unanswered.Add(1) // the service may have counted it
			return
		}
		failed := status >= http.StatusInternalServerError
		l.sent.count(cmp.Or(r.pattern, httpstat.Unmatched), status == http.StatusTooManyRequests, failed)
		if !failed {
			return
		}
	}
}

// request sends a request and reads the complete response. Otherwise the connection could not be reused.
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
