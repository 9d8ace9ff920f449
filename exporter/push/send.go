package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/httpclient"
	"github.com/windowstat/windowstat/internal/logonce"
	"github.com/windowstat/windowstat/internal/redact"
)

// sender sends requests and sends them again.
type sender struct {
	opts         Options
	client       *http.Client
	maxBackoff   time.Duration // between two attempts
	failFast     bool          // errors of URL and credentials are not retried
	noHistograms atomic.Bool   // the server takes none

	log logonce.Logger

	// encoding guards the encoders: one request is made at a time, with the memory of the one before, and processors stay free for
	// the service's own goroutines.
	encoding sync.Mutex
	encoders [2]encoder // the second is for families that are apart

	mu    sync.Mutex // guards what follows
	total totals
}

// totals counts what a sender has done. Each sample that is sent ends as one of samples, refused and unconfirmed.
type totals struct {
	seconds, samples, refused, unconfirmed, resent, lost, retries, bytes int64
	failing                                                              bool
	succeeded                                                            time.Time
}

func newSender(o Options, maxBackoff time.Duration) *sender {
	return &sender{
		opts: o, client: httpclient.New(o.Client, maxShards), maxBackoff: min(maxWait, maxBackoff),
		log:      logonce.Logger{To: o.Logger.With("url", redact.URL(o.URL))},
		encoders: [2]encoder{o.Format.encoder(), o.Format.encoder()},
	}
}

// Backoff between two attempts. It stays short: while a server fails now and then the seconds wait behind one request.
const (
	minWait = 250 * time.Millisecond
	maxWait = 5 * time.Second
)

// maxErrors is how often the server may respond to a request with 500. After that the request is given up, so that it does not
// block the next ones.
const maxErrors = 30

// send sends the requests of a shard's batch one after the other. It reports false if ctx ended before all are settled. If the
// server takes no histograms, it drops the rest, to be encoded again.
func (p *Pusher) send(ctx context.Context, s *shard) bool {
	for len(s.batch.requests) > 0 {
		r := s.batch.requests[0]
		if ctx.Err() != nil {
			return false
		}
		switch p.deliver(ctx, r) {
		case retry, doubtful, unreachable:
			return false
		case noHistogram:
			s.batch.requests, s.batch.to = nil, 0
			return true
		case refused:
			s.batch.lost = s.batch.logged
		case accepted:
			s.batch.lost = s.batch.lost || s.batch.logged && r.rejected > 0
		}
		s.batch.requests = s.batch.requests[1:]
	}
	return true
}

// deliver sends a request until it is settled: accepted, refused for good, unconfirmed, or to be encoded without histograms. Another
// verdict means that it gave up before.
func (p *sender) deliver(ctx context.Context, r *request) verdict {
	if r.err != nil {
		p.settle(r, refused, r.err)
		return refused
	}
	for wait := minWait; ; wait = min(2*wait, p.maxBackoff) {
		v, after, err := p.attempt(ctx, r)
		if v >= accepted {
			p.settle(r, v, err)
			return v
		}
		r.lastErr = err
		if ctx.Err() != nil || v == unreachable && p.failFast {
			return v
		}
		p.fail(err)
		pause := wait/2 + rand.N(wait)
		if after > 0 {
			pause = after
		}
		if end, ok := ctx.Deadline(); ok { // leave time for some attempts
			pause = min(pause, max(time.Until(end)/4, minWait))
		}
		if !background.Sleep(ctx, pause) {
			return v
		}
		p.retry()
	}
}

// attempt sends a request once. It returns the pause that the server asks for, if any.
func (p *sender) attempt(ctx context.Context, r *request) (v verdict, after time.Duration, err error) {
	ctx, cancel := p.attemptContext(ctx)
	defer cancel()
	content := &body{rest: bytes.NewReader(r.body)}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.opts.URL, content)
	if err != nil {
		return refused, 0, redact.Error(err)
	}
	req.ContentLength = int64(len(r.body))
	req.Header.Set("User-Agent", httpclient.UserAgent())
	p.opts.Format.prepare(req)
	resp, err := p.client.Do(req)
	if err != nil {
		r.doubt = r.doubt || content.used.Load()
		return retry, 0, redact.Error(err)
	}
	defer func() { _ = resp.Body.Close() }()
	const maxBody = 4 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // to reuse the connection
	}
	err = fmt.Errorf("%d %s: %s", resp.StatusCode, http.StatusText(resp.StatusCode), redact.Excerpt(string(text), resp, p.opts.URL))
	v = judge(resp.StatusCode, resp.Header, text, r.doubt)
	if v == accepted {
		err = p.partly(r, resp, text)
	}
	if v == unreachable && resp.StatusCode/100 == 2 {
		err = errors.New("the response is a web page; check the URL")
	}
	if v == noHistogram && !r.histogram {
		v = doubtful // it is about something else
	}
	if resp.StatusCode == http.StatusInternalServerError && v == doubtful {
		if r.errors++; r.errors > maxErrors {
			return unconfirmed, 0, err
		}
	}
	if v == doubtful {
		r.doubt = true
	}
	if v == retry || v == doubtful {
		after = httpclient.RetryAfter(resp.Header)
	}
	return v, after, err
}

// attemptContext returns the context of an attempt. The end of Run does not cancel a request that is being sent, because nobody
// could tell whether it arrived; it is canceled after Drain.
func (p *sender) attemptContext(ctx context.Context) (context.Context, context.CancelFunc) {
	attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opts.Timeout)
	stop := context.AfterFunc(ctx, func() {
		if _, last := ctx.Deadline(); last {
			cancel()
		} else {
			time.AfterFunc(p.opts.Drain, cancel)
		}
	})
	return attempt, func() { stop(); cancel() }
}

// body is a request body that reports whether any of it may have been sent. Nothing can rewind it, so the transport never sends it
// twice by itself.
type body struct {
	rest *bytes.Reader
	used atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(to []byte) (int, error) {
	b.used.Store(true)
	return b.rest.Read(to)
}

// Close implements io.Closer.
func (b *body) Close() error { return nil }
