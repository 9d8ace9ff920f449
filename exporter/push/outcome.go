package push

import (
	"time"

	"github.com/windowstat/windowstat/internal/redact"
)

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
	if r.doubt {
		p.total.resent += int64(r.samples)
	}
	p.total.bytes += int64(len(r.body))
	p.total.succeeded = time.Now()
	p.total.failing = false
	if p.told {
		p.told = false
		p.opts.Logger.Info("pushing works again", "url", redact.URL(p.opts.URL), "lost_seconds", p.total.lost)
	}
}

// fail records a failed attempt, and logs the first one.
func (p *sender) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.total.failing && p.log("cannot push; retrying", "err", redact.Error(err)) {
		p.told = true
	}
	p.total.failing = true
}

// refuse counts and logs a request that the server refused for good.
func (p *sender) refuse(r *request, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.refused += int64(r.samples)
	p.log("the server refused samples; they are not sent again", "samples", r.samples, "err", redact.Error(err))
}

// unconfirm counts and logs a request that the server may have, and that is not sent again.
func (p *sender) unconfirm(r *request, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.unconfirmed += int64(r.samples)
	p.log("whether samples arrived is unknown; they are not sent again", "samples", r.samples, "err", redact.Error(err))
}

// log logs a message at most once a minute, and reports whether it did. Holds mu.
func (p *sender) log(message string, args ...any) bool {
	if at, ok := p.logged[message]; ok && time.Since(at) < time.Minute {
		return false
	}
	p.logged[message] = time.Now()
	p.opts.Logger.Error(message, append([]any{"url", redact.URL(p.opts.URL)}, args...)...)
	return true
}
