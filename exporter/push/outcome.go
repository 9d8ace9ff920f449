package push

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/internal/redact"
)

// error logs a message at most once a minute.
func (p *sender) error(message string, args ...any) { p.log.Log(slog.LevelError, message, args...) }

// retry counts a request that is sent again.
func (p *sender) retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.retries++
}

// settle counts what became of a request, and logs it unless the server has it.
func (p *sender) settle(r *request, v verdict, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, n := &p.total, int64(r.samples)
	switch v {
	case accepted:
		t.samples += n - r.rejected
		if r.doubt { // what is refused may have arrived before
			t.resent += n - r.rejected
			t.unconfirmed += r.rejected
		} else {
			t.refused += r.rejected
		}
		if r.rejected > 0 {
			p.error("the server refused some samples of a request; they are not sent again", "samples", r.rejected, "err", err)
		} else if err != nil {
			p.log.Log(slog.LevelWarn, "the server accepted samples with a warning", "err", err)
		}
		t.bytes += int64(len(r.body))
		t.succeeded = time.Now()
		if t.failing {
			t.failing = false
			p.log.Log(slog.LevelInfo, "pushing works again", "lost_seconds", t.lost)
		}
	case refused:
		t.refused += n
		p.error("the server refused samples; they are not sent again", "samples", n, "err", err)
	case unconfirmed:
		t.unconfirmed += n
		p.error("whether samples arrived is unknown; they are not sent again", "samples", n, "err", err)
	case noHistogram:
		if !p.noHistograms.Swap(true) {
			p.error("the server takes no native histograms; the other samples are sent without them", "err", err)
		}
	}
}

// partly notes how much of an accepted request the server did not take. The error has the server's words, nil if there are none.
func (p *sender) partly(r *request, resp *http.Response, body []byte) error {
	n, words := p.opts.Format.refused(body)
	r.rejected = min(max(n, 0), int64(r.samples))
	if r.rejected == 0 && words == "" {
		return nil
	}
	return fmt.Errorf("%d %s: %s", resp.StatusCode, http.StatusText(resp.StatusCode), redact.Excerpt(words, resp, p.opts.URL))
}

// fail records a failed attempt, and logs the first one.
func (p *sender) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.total.failing {
		p.total.failing = true
		p.error("cannot push; retrying", "err", err)
	}
}
