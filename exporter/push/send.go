package push

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/httpclient"
	"github.com/windowstat/windowstat/internal/logonce"
	"github.com/windowstat/windowstat/internal/redact"
)

// sender sends requests and resends them until they are settled.
type sender struct {
	opts         Options
	client       *http.Client
	maxBackoff   time.Duration // maximum pause between two attempts
	failFast     bool          // do not retry after errors of the URL or the credentials
	noHistograms atomic.Bool   // the server does not accept native histograms
	useVersion1  atomic.Bool   // the server does not read remote write 2.0

	log logonce.Logger
	// encoders holds one encoder for each group of families in each part. The encoders keep their memory.
	encoders [maxParts * int(groups)]formatEncoder

	mu    sync.Mutex // guards the fields below
	total totals
}

// totals holds the counters of a sender. Each sent sample is finally counted once, in samples, refused or unconfirmed.
type totals struct {
	seconds, samples, refused, unconfirmed, resent, lost, retries, bytes int64

	failing   bool
	succeeded int64 // Unix time in milliseconds; 0 before the first success
}

// newSender returns a sender. maxBackoff limits the pause between two attempts, in addition to maxWait.
func newSender(o Options, maxBackoff time.Duration) *sender {
	return &sender{
		opts: o, client: httpclient.New(o.Client, maxParts), maxBackoff: min(maxWait, maxBackoff),
		log: logonce.Logger{To: o.Logger.With("url", redact.URL(o.URL))},
	}
}

// Bounds of the backoff between two attempts. The backoff stays short because all later seconds wait behind a request
// that fails occasionally.
const (
	minWait = 250 * time.Millisecond
	maxWait = 5 * time.Second
)

// maxErrors is the number of responses with status 500 that a request may receive. After one more the request is given
// up, so that it does not block the next ones.
const maxErrors = 30

// send sends the requests of the batch concurrently, and advances the position past the batch. It returns false if ctx
// ended before all requests were settled.
func (p *Pusher) send(ctx context.Context) bool {
	// The requests of a batch contain different series, so their order does not matter. A batch ends before the next
	// one begins, so the samples of a series stay in order.
	b := &p.batch
	free := make(chan struct{}, maxParts)
	var sending sync.WaitGroup
	for _, r := range b.requests {
		free <- struct{}{}
		sending.Go(func() {
			if ctx.Err() == nil {
				p.deliver(ctx, r)
			}
			<-free
		})
	}
	sending.Wait()
	b.requests = slices.DeleteFunc(b.requests, func(r *request) bool {
		b.lost = b.lost || b.logged && (r.verdict == refused || r.rejected > 0)
		return r.verdict >= accepted
	})
	if len(b.requests) > 0 {
		return false
	}
	p.pass(b.to, b.lost)
	return true
}

// deliver sends a request until it is settled: accepted, refused, unconfirmed, or a request with histograms to a server
// that does not accept them. It returns false if it gave up first.
func (p *sender) deliver(ctx context.Context, r *request) bool {
	for wait := minWait; ; wait = min(2*wait, p.maxBackoff) {
		if p.useVersion1.Load() && !r.toVersion1() {
			p.settle(r)
			return true
		}
		v, after, err := p.attempt(ctx, r)
		if r.verdict, r.lastErr = v, err; v == noVersion2 {
			p.fallBack(err)
			continue
		}
		if v >= accepted {
			p.settle(r)
			return true
		}
		if ctx.Err() != nil || v == unreachable && p.failFast { // Write gives up; a Pusher waits for a correction
			return false
		}
		p.fail(err)
		pause := cmp.Or(after, wait/2+rand.N(wait))
		if end, ok := ctx.Deadline(); ok { // leave time for some attempts
			pause = min(pause, max(time.Until(end)/4, minWait))
		}
		if !background.Sleep(ctx, pause) {
			return false
		}
		p.mu.Lock()
		p.total.retries++
		p.mu.Unlock()
	}
}

// attempt sends a request once. It returns the pause that the server requests with Retry-After, or 0.
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
	r.format.prepare(req)
	resp, err := p.client.Do(req)
	if err != nil {
		// The transport did not read the body, so the request cannot have arrived: the connection was refused, or the
		// name was not found.
		r.doubt = r.doubt || content.used.Load()
		return retry, 0, redact.Error(err)
	}
	defer func() { _ = resp.Body.Close() }()
	const maxBody = 4 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // to reuse the connection
	}
	withStatus := func(message string) error {
		code := resp.StatusCode
		return fmt.Errorf("%d %s: %s", code, http.StatusText(code), redact.Excerpt(message, resp, p.opts.URL))
	}
	err = withStatus(string(text))
	v, n, message := r.format.judge(resp.StatusCode, resp.Header, text, r)
	if v == accepted {
		r.rejected = min(max(n, 0), int64(r.samples))
		if err = nil; r.rejected > 0 || message != "" {
			err = withStatus(message)
		}
	}
	if v == unreachable && resp.StatusCode/100 == 2 {
		err = errors.New("the response is a web page; check the URL")
	}
	if v == noHistogram && r.group != histograms {
		v = doubtful // the message is not about this request
	}
	if resp.StatusCode == http.StatusInternalServerError && v == doubtful {
		// Some servers respond 500 to requests that they will never accept. Such a response looks like a temporary
		// error, so the number of attempts is bounded.
		if r.errors++; r.errors > maxErrors {
			return unconfirmed, 0, err
		}
	}
	r.doubt = r.doubt || v == doubtful
	if v == retry || v == doubtful {
		after = httpclient.RetryAfter(resp.Header)
	}
	return v, after, err
}

// attemptContext returns the context of an attempt. The end of Run does not cancel a request in progress, because its
// result would be unknown. The request is canceled after Drain.
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

// body is a request body that records whether any of it may have been sent. It cannot be rewound, so the transport
// never resends it by itself.
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

// error logs a message at most once a minute.
func (p *sender) error(message string, args ...any) { p.log.Log(slog.LevelError, message, args...) }

// settle counts the samples of a settled request by its verdict, and logs the verdict unless the request was accepted
// completely.
func (p *sender) settle(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, n, err := &p.total, int64(r.samples), r.lastErr
	switch r.verdict {
	case accepted:
		t.samples += n - r.rejected
		if r.doubt { // the refused samples may have arrived in an earlier attempt
			t.resent += n - r.rejected
			t.unconfirmed += r.rejected
		} else {
			t.refused += r.rejected
		}
		if r.rejected > 0 {
			p.error("the server refused some samples of a request; they are not sent again",
				"samples", r.rejected, "err", err)
		} else if err != nil {
			p.log.Log(slog.LevelWarn, "the server accepted samples with a warning", "err", err)
		}
		t.bytes += int64(len(r.body))
		t.succeeded = time.Now().UnixMilli()
		if t.failing {
			t.failing = false
			p.log.Log(slog.LevelInfo, "pushing works again", "lost_seconds", t.lost)
		}
	case refused:
		t.refused += n
		p.error("the server refused samples; they are not sent again", "samples", n, "err", err)
	case unconfirmed:
		t.unconfirmed += n
		p.error("unknown whether samples arrived; they are not sent again", "samples", n, "err", err)
	case noHistogram:
		if !p.noHistograms.Swap(true) {
			p.error("the server does not accept native histograms; the other samples are sent without them", "err", err)
		}
	}
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
