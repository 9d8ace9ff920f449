package httpstat

import (
	"cmp"
	"errors"
	"io"
	"net/http"

	"github.com/windowstat/windowstat/collector"
)

// Transport counts the requests that next sends, http.DefaultTransport if nil: the calls of other services, for the
// resource that name gives them; nil stands for method and host, such as "GET api.example.com". They are
// [collector.Outbound], nested below the entry of the request's context.
//
// A call ends when its response was read to the end or closed, and is counted with the response's status, without a code
// where next returned an error. It fails with a status of 500 or more, or what [Exception] says, an error of next or one while
// reading; not if the caller's context was cancelled. A response that is never closed stays in flight, and
// keeps its connection, too. A call that a limit refuses is not sent: the error is [collector.ErrBlocked]. A nil
// Collector counts nothing.
//
// What next returns is what the caller gets, but for the body: also where next breaks the contract of http.RoundTripper, as
// mocks do. No response without an error is an exception, because http.Client makes an error of it. A response without a
// Body is over when it is there; it is an exception where its ContentLength says that there is one.
func Transport(c *collector.Collector, name func(*http.Request) string, next http.RoundTripper, opts ...Option) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	if c == nil {
		return next
	}
	if name == nil {
		name = methodAndHost
	}
	return &transport{settings: apply(opts), c: c, name: name, next: next}
}

func methodAndHost(r *http.Request) string {
	method := cmp.Or(r.Method, http.MethodGet)
	if r.URL == nil { // which is for next to complain of
		return method
	}
	return method + " " + r.URL.Host
}

// What http.Client makes an error of, though next returned none.
var (
	errNoResponse = errors.New("httpstat: neither a response nor an error")
	errNoBody     = errors.New("httpstat: a response without the body that its length speaks of")
)

type transport struct {
	*settings
	c    *collector.Collector
	name func(*http.Request) string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.skips(r) {
		return t.next.RoundTrip(r)
	}
	_, e, err := t.c.Enter(r.Context(), t.name(r), collector.Outbound())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper always does
		}
		return nil, err
	}
	failed, over := collector.ErrPanicked, true // unless next returns
	var code collector.Code
	defer func() {
		if over {
			e.ExitCode(failed, code)
		}
	}()
	resp, err := t.next.RoundTrip(r)
	switch {
	case err != nil:
		failed = err
		return resp, err
	case resp == nil:
		failed = errNoResponse
		return nil, nil
	}
	code = collector.HTTPStatus(resp.StatusCode)
	failed = t.failure(resp.StatusCode)
	if failed == nil && resp.Body == nil && resp.ContentLength > 0 && r.Method != http.MethodHead {
		failed = errNoBody
	}
	// After a switch of the protocol no response follows, and a response without a body has been read.
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.Body == nil || resp.Body == http.NoBody {
		return resp, nil
	}
	over = false
	counted := *resp // next may keep its own, and return it again
	counted.Body = &body{ReadCloser: resp.Body, entry: &e, code: code, err: failed}
	return &counted, nil
}

// CloseIdleConnections closes those of the wrapped transport: http.Client asks for it.
func (t *transport) CloseIdleConnections() {
	if x, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		x.CloseIdleConnections()
	}
}

// body is a response's body whose end is the end of the call.
type body struct {
	io.ReadCloser
	entry *collector.Entry
	code  collector.Code
	err   error // what the call failed with already
}

func (b *body) Read(p []byte) (n int, err error) {
	defer func() {
		switch err {
		case nil:
		case io.EOF:
			b.end(nil)
		default:
			b.end(err)
		}
	}()
	err = collector.ErrPanicked // unless it returns
	return b.ReadCloser.Read(p)
}

func (b *body) Close() error {
	failed := collector.ErrPanicked // unless it returns
	defer func() { b.end(failed) }()
	err := b.ReadCloser.Close()
	failed = nil // reading to the end is not everybody's wish
	return err
}

// end ends the call; only the first time counts.
func (b *body) end(err error) {
	if b.err != nil {
		err = b.err
	}
	b.entry.ExitCode(err, b.code)
}
