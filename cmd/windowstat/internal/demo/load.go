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

// maxInFlight is how many requests the generator has in flight at most; beyond it, it waits.
const maxInFlight = 1000

// Bursts last a second, and come in the fifth of every ten.
const (
	burstEvery = 10 * time.Second
	burstAt    = 4 * time.Second
)

// Load sends HTTP requests to the shop at base, http://host:port, at a rate that does not depend on how fast it answers, until
// ctx ends; meanwhile the shop has its incident. It returns when every one was answered: how many were not.
func (s *Shop) Load(ctx context.Context, base string, transport http.RoundTripper) (unanswered int64) {
	l := &load{
		Shop: s, base: base, slots: semaphore.NewWeighted(maxInFlight),
		client: &http.Client{Transport: transport, Timeout: time.Minute},
	}
	defer l.client.CloseIdleConnections()
	l.all.Go(func() { s.breaks.run(ctx, s.stats, s.Limits(), s.rate) })
	for _, r := range s.routes {
		l.all.Go(func() { l.run(ctx, r) })
	}
	l.all.Wait()
	return l.unanswered.Load()
}

// run sends the requests of a route until ctx ends. One that is behind catches up with a tenth of a second at most: the rate was more
// than the machine can do.
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
			due.AllowN(time.Now(), due.Burst()) // what was not sent meanwhile is not due
		}
		if due.Wait(ctx) != nil || l.slots.Acquire(ctx, 1) != nil {
			return
		}
		l.all.Go(func() { l.send(r); l.slots.Release(1) })
	}
}

// clients are who the generator pretends to be.
var clients = []string{"web", "web", "web", "mobile", "mobile", "partner"}

// clientHeader is where it says so.
const clientHeader = "X-Client"

// send sends a request, in an incident again as often as clients do while it fails, and counts what the answers say.
func (l *load) send(r route) {
	attempts := 1
	if l.breaks.now(retries) {
		attempts = 4
	}
	for range attempts {
		status, err := l.request(r)
		if err != nil {
			l.unanswered.Add(1) // whether the service counted it, nobody knows
			return
		}
		failed := status >= http.StatusInternalServerError
		l.sent.count(cmp.Or(r.pattern, httpstat.Unmatched), status == http.StatusTooManyRequests, failed)
		if !failed {
			return
		}
	}
}

// request sends a request and reads all of the answer, so that its connection serves the next one.
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
