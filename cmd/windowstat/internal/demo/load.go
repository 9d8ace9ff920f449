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

	"github.com/windowstat/windowstat/collector/httpstat"
)

// Load sends real HTTP requests to the shop at base, http://host:port, at a rate that does not depend on how fast it answers, until
// ctx ends. It returns when every one was answered: how many were not.
func (s *Shop) Load(ctx context.Context, base string) (unanswered int64) {
	l := newLoad(base, s.routes, s.rate, s.sent)
	l.breaks = s.breaks
	l.run(ctx)
	return l.unanswered.Load()
}

// load is one run of [Shop.Load]; it counts answers for each resource.
type load struct {
	base   string // http://host:port
	routes []route
	rate   float64 // requests a second over all routes
	client *http.Client

	wg    sync.WaitGroup
	slots chan struct{} // bounds the requests in flight

	sent       *observer
	breaks     *incident
	unanswered atomic.Int64
}

// maxInFlight is how many requests the generator has in flight at most; beyond it, it waits.
const maxInFlight = 1000

// tick is how often requests are sent. In a burst, all of a tick's go out at once.
const tick = 10 * time.Millisecond

func newLoad(base string, routes []route, rate float64, sent *observer) *load {
	return &load{
		base: base, routes: routes, rate: rate,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxInFlight}, Timeout: time.Minute},
		slots:  make(chan struct{}, maxInFlight),
		sent:   sent,
	}
}

// run sends requests until ctx ends, and returns when every one was answered.
func (l *load) run(ctx context.Context) {
	defer l.client.CloseIdleConnections()
	defer l.wg.Wait()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	begin := time.Now()
	last := begin
	due := make([]float64, len(l.routes))
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		// A generator that is behind does not try to catch up: the rate was more than the machine can do.
		passed := min(now.Sub(last), 10*tick)
		for i, r := range l.routes {
			due[i] += l.share(r, now.Sub(begin)) * passed.Seconds()
			for ; due[i] >= 1; due[i]-- {
				select {
				case l.slots <- struct{}{}:
				case <-ctx.Done():
					return
				}
				l.wg.Go(func() { l.send(r); <-l.slots })
			}
		}
		last = now
	}
}

// share is the rate of a route at a time since the beginning. Bursts come every ten seconds, for one second.
func (l *load) share(r route, since time.Duration) float64 {
	const every = 10 * time.Second
	switch {
	case !r.burst:
		return l.rate * r.share
	case since%every >= 4*time.Second && since%every < 5*time.Second:
		return l.rate * r.share * every.Seconds()
	default:
		return 0
	}
}

// clients are who the generator pretends to be.
var clients = []string{"web", "web", "web", "mobile", "mobile", "partner"}

// clientHeader is where it says so.
const clientHeader = "X-Client"

func (l *load) send(r route) {
	for range l.breaks.attempts() {
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
