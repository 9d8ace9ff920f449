package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// verdict is what an attempt says about a request.
type verdict int

const (
	undecided   verdict = iota // it is sent again
	accepted                   // the server has it
	refused                    // the server will never accept it
	unconfirmed                // the server may have it from an earlier attempt, and will not say
)

// attemptResult is the result of an attempt.
type attemptResult struct {
	verdict verdict
	config  bool          // the URL or the credentials may be wrong
	after   time.Duration // Retry-After; 0 for none
	err     error
}

// attempt sends a request once.
//
// A status 4xx means that the server will never take these samples; but those about the URL or the credentials may be
// corrected by an operator, so the request is retried. A request that is rejected as a duplicate, after an attempt without a
// clear result, may have arrived then, or another process may have written to the same series: it is unconfirmed.
func (p *sender) attempt(ctx context.Context, r *request) attemptResult {
	ctx, cancel := p.attemptContext(ctx)
	defer cancel()
	content := &body{rest: bytes.NewReader(r.body), closed: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.opts.URL, content)
	if err != nil {
		return attemptResult{verdict: refused, err: err}
	}
	req.ContentLength = int64(len(r.body))
	defer content.wait(ctx)
	for name, values := range p.format.Header {
		req.Header[name] = values
	}
	resp, err := p.client.Do(req)
	if err != nil {
		r.mayHave = r.mayHave || content.used.Load()
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
		if isPage(resp.Header) {
			return attemptResult{config: true, err: errors.New("the response is a web page; check the URL")}
		}
		return attemptResult{verdict: accepted}
	case r.mayHave && isDuplicate(code, resp.Header, text):
		return attemptResult{verdict: unconfirmed, err: err}
	case code == http.StatusTooManyRequests:
		return attemptResult{after: retryAfter(resp.Header), err: err}
	case code == http.StatusInternalServerError && r.errors >= maxErrors:
		return attemptResult{verdict: unconfirmed, err: err}
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
		r.mayHave = true // VictoriaMetrics stores lines while it reads the next ones
		return attemptResult{err: err}
	}
	return attemptResult{verdict: refused, err: err}
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

// maxErrors is how often the server may respond to a request with 500. After that the request is given up, so that it does not
// block the next ones.
const maxErrors = 30

// body is a request body that reports whether any of it may have been sent, and when its memory may be reused. Nothing can
// rewind it, so the transport never sends it twice by itself.
type body struct {
	rest   *bytes.Reader
	used   atomic.Bool
	closed chan struct{}
	once   sync.Once
}

// Read implements io.Reader.
func (b *body) Read(to []byte) (int, error) {
	b.used.Store(true)
	return b.rest.Read(to)
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
