package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

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

	mu    sync.Mutex // guards what follows
	total totals
}

// totals counts what a sender has done.
type totals struct {
	seconds, samples, refused, lost, retries, bytes int64
	failing                                         bool
	succeeded, lastLogged                           time.Time
}

// newSender makes the HTTP client.
func newSender(o Options, f Format, maxBackoff time.Duration) (*sender, error) {
	client, err := config.NewClientFromConfig(o.Client, "windowstat", config.WithUserAgent("windowstat/"+version.String()))
	if err != nil {
		return nil, fmt.Errorf("invalid Client: %w", err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &sender{opts: o, format: f, client: client, maxBackoff: min(maxWait, maxBackoff)}, nil
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

// deliver sends a request until it is settled: accepted, or refused for good. It reports false if it gave up before.
func (p *sender) deliver(ctx context.Context, r *request) bool {
	if r.err != nil {
		p.refuse(r, r.err)
		return true
	}
	for wait := minWait; ; wait = min(2*wait, p.maxBackoff) {
		result := p.attempt(ctx, r)
		switch {
		case result.done:
			p.succeed(r)
			return true
		case result.refused:
			p.refuse(r, result.err)
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

// attemptResult is the result of an attempt.
type attemptResult struct {
	done    bool          // the server accepted the request
	refused bool          // the server will never accept it
	config  bool          // the URL or the credentials may be wrong
	after   time.Duration // Retry-After; 0 for none
	err     error
}

// attempt sends a request once.
//
// Prometheus rejects a request with samples that it already has, with 400. So 400 after an attempt without a clear result means
// that the first one arrived. Other 4xx statuses mean that the server will never take these samples; but those about the URL or
// the credentials may be corrected by an operator, so the request is retried.
func (p *sender) attempt(ctx context.Context, r *request) attemptResult {
	ctx, cancel := p.attemptContext(ctx)
	defer cancel()
	content := &body{Reader: bytes.NewReader(r.body), closed: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.opts.URL, content)
	if err != nil {
		return attemptResult{refused: true, err: err}
	}
	req.ContentLength = int64(len(r.body))
	defer content.wait(ctx)
	for name, values := range p.format.Header {
		req.Header[name] = values
	}
	resp, err := p.client.Do(req)
	if err != nil {
		var op *net.OpError
		r.mayHave = r.mayHave || !errors.As(err, &op) || op.Op != "dial" // a failed dial sent nothing
		return attemptResult{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	const maxBody = 4 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // to reuse the connection
	}
	err = fmt.Errorf("%s: %s", resp.Status, oneLine(text))
	switch code := resp.StatusCode; {
	case code/100 == 2:
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
			return attemptResult{config: true, err: errors.New("the response is a web page; check the URL")}
		}
		return attemptResult{done: true}
	case code == http.StatusBadRequest && r.mayHave:
		return attemptResult{done: true}
	case code == http.StatusTooManyRequests:
		return attemptResult{after: retryAfter(resp.Header), err: err}
	case code == http.StatusInternalServerError && r.errors >= maxErrors:
		return attemptResult{refused: true, err: err}
	case code/100 == 5:
		r.mayHave = true
		if code == http.StatusInternalServerError {
			r.errors++
		}
		return attemptResult{after: retryAfter(resp.Header), err: err}
	case code/100 == 3, code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound,
		code == http.StatusMethodNotAllowed, code == http.StatusProxyAuthRequired:
		return attemptResult{config: true, err: err}
	case code == http.StatusRequestTimeout:
		return attemptResult{err: err}
	}
	return attemptResult{refused: true, err: err}
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

// maxErrors is how often the server may respond to a request with 500. After that the request is refused, so that it does not
// block the next ones.
const maxErrors = 30

// body is a request body that reports when its memory may be reused.
type body struct {
	*bytes.Reader
	closed chan struct{}
	once   sync.Once
}

// Close implements io.Closer. The transport may call it after Do has returned.
func (b *body) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

func (b *body) wait(ctx context.Context) {
	select {
	case <-b.closed:
	case <-ctx.Done():
	}
}

// oneLine returns the beginning of a response body on one line.
func oneLine(b []byte) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "?")), " ")
	const most = 200
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

// retryAfter returns the wait that the server asks for, at most a minute; 0 for none.
func retryAfter(h http.Header) time.Duration {
	header := h.Get("Retry-After")
	d := time.Duration(0)
	if seconds, err := strconv.Atoi(header); err == nil {
		d = time.Duration(min(max(seconds, 0), 3600)) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), time.Minute)
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
	p.total.bytes += int64(len(r.body))
	p.total.succeeded = time.Now()
	if p.total.failing {
		p.total.failing = false
		p.opts.Logger.Info("pushing works again", "url", bareURL(p.opts.URL), "lost_seconds", p.total.lost)
	}
}

// fail records a failed attempt, and logs the first one.
func (p *sender) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.total.failing && time.Since(p.total.lastLogged) > time.Minute {
		p.total.lastLogged = time.Now()
		p.opts.Logger.Error("cannot push; retrying", "url", bareURL(p.opts.URL), "err", bareError(err))
	}
	p.total.failing = true
}

// refuse counts and logs a request that the server refused for good.
func (p *sender) refuse(r *request, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.total.lastLogged) > time.Minute {
		p.total.lastLogged = time.Now()
		p.opts.Logger.Error("the server refused samples; they are not sent again", "url", bareURL(p.opts.URL), "samples", r.samples, "err", bareError(err))
	}
	p.total.refused += int64(r.samples)
}
