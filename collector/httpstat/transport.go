package httpstat

import (
	"errors"
	"io"
	"net/http"

	"github.com/windowstat/windowstat/collector"
)

// Transport counts the requests that next sends, http.DefaultTransport if nil: the calls of other services, for the
// resource that name gives them; nil stands for method and host, such as "GET api.example.com". They are
// [collector.Outbound], nested below the entry of the request's context.
//
// A call ends when its response was read to the end or closed, and fails with a status of 500 or more, an error of next
// or one while reading; not if the caller's context was cancelled. A response that is never closed stays in flight, and
// keeps its connection, too. A call that a limit refuses is not sent: the error is [collector.ErrBlocked]. A nil
// Collector counts nothing.
func Transport(c *collector.Collector, name func(*http.Request) string, next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	if c == nil {
		return next
	}
	if name == nil {
		name = methodAndHost
	}
	return &transport{c: c, name: name, next: next}
}

func methodAndHost(r *http.Request) string {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	return method + " " + r.URL.Host
}

type transport struct {
	c    *collector.Collector
	name func(*http.Request) string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	_, e, err := t.c.Enter(r.Context(), t.name(r), collector.Outbound())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper always does
		}
		return nil, err
	}
	failed := collector.ErrPanicked
	defer func() {
		if failed != nil {
			e.Exit(failed)
		}
	}()
	resp, err := t.next.RoundTrip(r)
	if failed = err; err != nil {
		return resp, err
	}
	b := &body{ReadCloser: resp.Body, entry: e}
	if resp.StatusCode >= http.StatusInternalServerError {
		b.err = StatusError(resp.StatusCode)
	}
	// After a switch of the protocol no response follows, and a response without a body has been read.
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.Body == http.NoBody {
		b.end(nil)
		return resp, nil
	}
	resp.Body = b
	return resp, nil
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
	err   error // what the call failed with already
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.end(nil)
	case err != nil:
		b.end(err)
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end(nil) // reading to the end is not everybody's wish
	return err
}

// end ends the call; only the first time counts.
func (b *body) end(err error) {
	if b.err != nil {
		err = b.err
	}
	b.entry.Exit(err)
}
