package push

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/windowstat/windowstat/internal/bare"

	"github.com/prometheus/common/config"

	"github.com/windowstat/windowstat/exporter/internal/version"
)

// sender sends requests and retries them.
type sender struct {
	opts       Options
	format     Format
	client     *http.Client
	maxBackoff time.Duration // between two attempts
	failFast   bool          // errors of URL and credentials are not retried

	mu     sync.Mutex // guards what follows
	total  totals
	logged map[string]time.Time // when each message was logged
	told   bool                 // that pushing fails
}

// totals counts what a sender has done. Each sample that is sent ends as one of samples, refused and unconfirmed.
type totals struct {
	seconds, samples, refused, unconfirmed, resent, lost, retries, bytes int64
	failing                                                              bool
	succeeded                                                            time.Time
}

// newSender makes the HTTP client.
func newSender(o Options, f Format, maxBackoff time.Duration) (*sender, error) {
	client, err := config.NewClientFromConfig(o.Client, "windowstat", config.WithUserAgent("windowstat/"+version.String()))
	if err != nil {
		return nil, fmt.Errorf("invalid Client: %w", err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &sender{opts: o, format: f, client: client, maxBackoff: min(maxWait, maxBackoff), logged: map[string]time.Time{}}, nil
}

// Backoff between two attempts.
const (
	minWait = 250 * time.Millisecond
	maxWait = 30 * time.Second
)

// send sends the requests of the batch one after the other. It reports false if ctx ended before all are settled.
func (p *Pusher) send(ctx context.Context) bool {
	for ; len(p.batch.requests) > 0; p.batch.requests = p.batch.requests[1:] {
		if ctx.Err() != nil || !p.deliver(ctx, p.batch.requests[0]) {
			return false
		}
	}
	return true
}

// deliver sends a request until it is settled: accepted, refused for good, or unconfirmed. It reports false if it gave up before.
func (p *sender) deliver(ctx context.Context, r *request) bool {
	if r.err != nil {
		p.refuse(r, r.err)
		return true
	}
	for wait := minWait; ; wait = min(2*wait, p.maxBackoff) {
		result := p.attempt(ctx, r)
		switch result.verdict {
		case accepted:
			p.succeed(r)
			return true
		case refused:
			p.refuse(r, result.err)
			return true
		case unconfirmed:
			p.doubt(r, result.err)
			return true
		}
		r.lastErr = result.err
		if ctx.Err() != nil || result.config && p.failFast {
			return false
		}
		p.fail(result.err)
		pause := wait/2 + rand.N(wait)
		if result.after > 0 {
			pause = result.after
		}
		if end, ok := ctx.Deadline(); ok { // leave time for some attempts
			pause = min(pause, max(time.Until(end)/4, minWait))
		}
		if !sleep(ctx, pause) {
			return false
		}
		p.retry()
	}
}

func (p *sender) retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.retries++
}

// succeed counts an accepted request.
func (p *sender) succeed(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.samples += int64(r.samples)
	if r.mayHave {
		p.total.resent += int64(r.samples)
	}
	p.total.bytes += int64(len(r.body))
	p.total.succeeded = time.Now()
	p.total.failing = false
	if p.told {
		p.told = false
		p.opts.Logger.Info("pushing works again", "url", bare.URL(p.opts.URL), "lost_seconds", p.total.lost)
	}
}

// fail records a failed attempt, and logs the first one.
func (p *sender) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.total.failing && p.log("cannot push; retrying", "err", bare.Error(err)) {
		p.told = true
	}
	p.total.failing = true
}

// refuse counts and logs a request that the server refused for good.
func (p *sender) refuse(r *request, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.refused += int64(r.samples)
	p.log("the server refused samples; they are not sent again", "samples", r.samples, "err", bare.Error(err))
}

// doubt counts and logs a request that the server may have, and that is not sent again.
func (p *sender) doubt(r *request, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.unconfirmed += int64(r.samples)
	p.log("whether samples arrived is unknown; they are not sent again", "samples", r.samples, "err", bare.Error(err))
}

// log logs a message at most once a minute, and reports whether it did.
func (p *sender) log(message string, args ...any) bool {
	if at, ok := p.logged[message]; ok && time.Since(at) < time.Minute {
		return false
	}
	p.logged[message] = time.Now()
	p.opts.Logger.Error(message, append([]any{"url", bare.URL(p.opts.URL)}, args...)...)
	return true
}
