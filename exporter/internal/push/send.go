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

// sender sends requests.
type sender struct {
	opts   Options
	format Format
	client *http.Client
	most   time.Duration // to wait between two attempts
	once   bool          // what somebody would have to mend is not tried again

	mu    sync.Mutex // guards what follows
	total totals
}

// totals are what a sender has done.
type totals struct {
	seconds, samples, refused, lost, retries, bytes int64
	failing                                         bool
	succeeded, complained                           time.Time
}

// newSender makes the client.
func newSender(o Options, f Format, most time.Duration) (*sender, error) {
	client, err := config.NewClientFromConfig(o.Client, "windowstat", config.WithUserAgent("windowstat/"+version.String()))
	if err != nil {
		return nil, fmt.Errorf("the options of the Client: %w", err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &sender{opts: o, format: f, client: client, most: min(maxWait, most)}, nil
}

// How long to wait between two attempts.
const (
	firstWait = 250 * time.Millisecond
	maxWait   = 30 * time.Second
)

// send sends the requests of the batch one after the other, each until it is dealt with. It reports false if ctx ended
// before that.
func (p *Pusher) send(ctx context.Context) bool {
	for ; len(p.batch.requests) > 0; p.batch.requests = p.batch.requests[1:] {
		if ctx.Err() != nil || !p.deliver(ctx, p.batch.requests[0]) {
			return false
		}
	}
	return true
}

// deliver sends a request until it is dealt with.
func (p *sender) deliver(ctx context.Context, r *request) bool {
	if r.err != nil {
		p.refuse(r, r.err)
		return true
	}
	for wait := firstWait; ; wait = min(2*wait, p.most) {
		v := p.attempt(ctx, r)
		switch {
		case v.done:
			p.succeed(r)
			return true
		case v.refused:
			p.refuse(r, v.err)
			return true
		}
		r.lastErr = v.err
		if ctx.Err() != nil || v.mistake && p.once {
			return false
		}
		p.fail(v.err)
		pause := wait/2 + rand.N(wait)
		if v.after > 0 {
			pause = v.after
		}
		if end, ok := ctx.Deadline(); ok { // then there are some attempts left
			pause = min(pause, max(time.Until(end)/4, firstWait))
		}
		if !sleep(ctx, pause) {
			return false
		}
		p.retry()
	}
}

// verdict is what became of an attempt.
type verdict struct {
	done    bool          // the server has it
	refused bool          // and will never take it
	mistake bool          // somebody may have to mend the address or the credentials
	after   time.Duration // when to come again, if the server says so
	err     error
}

// attempt sends a request once.
//
// What counts is what a server may do to samples that it gets twice: Prometheus refuses the whole request with 400. So
// 400 after an attempt that ended in doubt means that it had it. Other answers of the client's fault say that the server
// does not want these samples, and never will; but those about the address or the credentials are somebody's mistake
// who may mend it, and no reason to lose anything.
func (p *sender) attempt(ctx context.Context, r *request) verdict {
	ctx, cancel := p.attemptContext(ctx)
	defer cancel()
	content := &body{Reader: bytes.NewReader(r.body), closed: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.opts.URL, content)
	if err != nil {
		return verdict{refused: true, err: err}
	}
	req.ContentLength = int64(len(r.body))
	defer content.wait(ctx)
	for name, values := range p.format.Header {
		req.Header[name] = values
	}
	resp, err := p.client.Do(req)
	if err != nil {
		var op *net.OpError
		r.doubted = r.doubted || !errors.As(err, &op) || op.Op != "dial" // then nothing was sent
		return verdict{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	const enough = 4 << 10
	answer, err := io.ReadAll(io.LimitReader(resp.Body, enough))
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be used again
	}
	err = fmt.Errorf("%s: %s", resp.Status, oneLine(answer))
	switch code := resp.StatusCode; {
	case code/100 == 2:
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
			return verdict{mistake: true, err: errors.New("the answer is a web page; is the URL right?")}
		}
		return verdict{done: true}
	case code == http.StatusBadRequest && r.doubted:
		return verdict{done: true}
	case code == http.StatusTooManyRequests:
		return verdict{after: retryAfter(resp.Header), err: err}
	case code == http.StatusInternalServerError && r.errors >= maxErrors:
		return verdict{refused: true, err: err}
	case code/100 == 5:
		r.doubted = true
		if code == http.StatusInternalServerError {
			r.errors++
		}
		return verdict{after: retryAfter(resp.Header), err: err}
	case code/100 == 3, code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound,
		code == http.StatusMethodNotAllowed, code == http.StatusProxyAuthRequired:
		return verdict{mistake: true, err: err}
	case code == http.StatusRequestTimeout:
		return verdict{err: err}
	}
	return verdict{refused: true, err: err}
}

// attemptContext is the context of an attempt. When Run ends it does not break off a request on its way, of which nobody
// would know whether it arrived; it waits no longer than Drain for it.
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

// maxErrors is how often a server may answer a request with 500. After that it is the request that is wrong, and would
// be in the way of those behind it for ever.
const maxErrors = 30

// body is a request's body, whose memory is used again when it was read.
type body struct {
	*bytes.Reader
	closed chan struct{}
	once   sync.Once
}

// Close implements io.Closer. The transport calls it, perhaps after it has returned.
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

// oneLine is the beginning of what a server said.
func oneLine(b []byte) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "?")), " ")
	const most = 200
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

// retryAfter is how long the server wants us to wait, 0 if it does not say. It may be wrong.
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

// succeed counts a request that arrived.
func (p *sender) succeed(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.samples += int64(r.samples)
	p.total.bytes += int64(len(r.body))
	p.total.succeeded = time.Now()
	if p.total.failing {
		p.total.failing = false
		p.opts.Logger.Info("seconds can be sent again", "url", p.opts.URL, "lost_seconds", p.total.lost)
	}
}

// fail notes that an attempt failed, and says so if the one before did not.
func (p *sender) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.total.failing && time.Since(p.total.complained) > time.Minute {
		p.total.complained = time.Now()
		p.opts.Logger.Error("seconds cannot be sent; trying again", "url", p.opts.URL, "err", err)
	}
	p.total.failing = true
}

// refuse counts a request that the server will not take.
func (p *sender) refuse(r *request, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.total.complained) > time.Minute {
		p.total.complained = time.Now()
		p.opts.Logger.Error("samples were refused, and are not sent again", "url", p.opts.URL, "samples", r.samples, "err", err)
	}
	p.total.refused += int64(r.samples)
}
