package push

import (
	"log/slog"
	"time"

	"github.com/windowstat/windowstat/internal/redact"
)

// error logs a message at most once a minute.
func (p *sender) error(message string, args ...any) { p.log.Log(slog.LevelError, message, args...) }

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
	if p.total.failing {
		p.total.failing = false
		p.log.Log(slog.LevelInfo, "pushing works again", "lost_seconds", p.total.lost)
	}
}

// fail records a failed attempt, and logs the first one.
func (p *sender) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.total.failing {
		p.total.failing = true
		p.error("cannot push; retrying", "err", redact.Error(err))
	}
}

// refuse counts and logs a request that the server refused for good.
func (p *sender) refuse(r *request, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.refused += int64(r.samples)
	p.error("the server refused samples; they are not sent again", "samples", r.samples, "err", redact.Error(err))
}

// unconfirm counts and logs a request that the server may have, and that is not sent again.
func (p *sender) unconfirm(r *request, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.unconfirmed += int64(r.samples)
	p.error("whether samples arrived is unknown; they are not sent again", "samples", r.samples, "err", redact.Error(err))
}
