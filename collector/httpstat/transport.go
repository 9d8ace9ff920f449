package httpstat

import (
	"cmp"
	"errors"
	"io"
	"net/http"

	"github.com/windowstat/windowstat/collector"
)

// Transport returns an http.RoundTripper that counts the requests that next sends: the calls to other services. If next
// is nil, it is http.DefaultTransport. The parameter name is a function that returns the resource of a request. If name
// is nil, the resource is the method and the host, such as "GET api.example.com". The calls are [collector.Outbound].
// They are nested below the call in the context of the request.
//
// A call ends when its response is read to the end or closed, or when next returns an error. If the response has status
// 101 or no body, the call ends when next returns. If the response has a body and is never closed, the call stays in
// flight. (net/http also cannot reuse the connection.) A call that a limit refuses is not sent: its error wraps
// [collector.ErrBlocked]. A nil Collector counts nothing.
//
// A call is counted with the status of the response. A gRPC response that was read to the end is counted with its gRPC
// code. If next returns an error, the call has no code. A call is an exception if its status is 500 or more (see
// [Exception]), if next returns an error, or if reading fails. By default, the error context.Canceled of next or of
// reading is not an exception, because the caller has canceled the context; see [collector.IsException].
//
// The caller gets the result of next unchanged, except for the body. This is true even if next breaks the contract of
// http.RoundTripper, as mocks do. Results that break the contract count as follows:
//
//   - If next returns neither a response nor an error, the call is an exception, because http.Client then returns an
//     error.
//   - If the response has a nil Body, the call ends when next returns. The call is an exception if ContentLength is
//     positive, unless the method is HEAD.
func Transport(
	c *collector.Collector,
	name func(*http.Request) string,
	next http.RoundTripper,
	opts ...Option,
) http.RoundTripper {
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
	if r.URL == nil { // r is invalid, and next returns an error
		return method
	}
	return method + " " + r.URL.Host
}

// Errors of calls for which next returned no error, but http.Client returns an error.
var (
	errNoResponse = errors.New("httpstat: RoundTripper returned neither a response nor an error")
	errNoBody     = errors.New("httpstat: response has a ContentLength but no body")
)

// transport is the http.RoundTripper of [Transport].
type transport struct {
	*settings
	c    *collector.Collector
	name func(*http.Request) string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. A call ends in one of the following functions, at the event on the right:
//
//	RoundTrip   next panics, or returns an error or no response
//	RoundTrip   the response has no body, or status 101
//	body.Read   the end of the body, an error, or a panic
//	body.Close  the caller closes the body
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.skips(r) {
		return t.next.RoundTrip(r)
	}
	_, e, err := t.c.Enter(r.Context(), t.name(r), collector.Outbound())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // the contract of http.RoundTripper requires it
		}
		return nil, err
	}
	failed, over := collector.ErrPanicked, true // failed keeps this value if next panics
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
	rpc := resp.StatusCode == http.StatusOK && isGRPC(r)
	if rpc { // a gRPC response without a body has the code in its header
		if n, ok := grpcStatus(resp.Header); ok {
			code, failed, rpc = collector.GRPCCode(n), cmp.Or(grpcFailure(n, true), failed), false
		}
	}
	if failed == nil && resp.Body == nil && resp.ContentLength > 0 && r.Method != http.MethodHead {
		failed = errNoBody
	}
	// A response with status 101 or without a body is not read, so the call has ended.
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.Body == nil || resp.Body == http.NoBody {
		return resp, nil
	}
	over = false
	counted := *resp // a copy, because next may keep and reuse its response
	counted.Body = &body{
		ReadCloser: resp.Body, entry: &e, code: code, err: failed, rpc: rpc, original: resp, returned: &counted,
	}
	return &counted, nil
}

// CloseIdleConnections closes the idle connections of next. http.Client calls this method.
func (t *transport) CloseIdleConnections() {
	if x, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		x.CloseIdleConnections()
	}
}

// body wraps the body of a response. It ends the call when the response body has been read to the end or is closed.
type body struct {
	io.ReadCloser
	entry    *collector.Entry
	code     collector.Code
	err      error          // error of the gRPC code or the HTTP status; it takes precedence over errors of Read
	rpc      bool           // the trailers may contain a gRPC code
	original *http.Response // response that next returned
	returned *http.Response // copy of original that RoundTrip has returned
}

func (b *body) Read(p []byte) (n int, err error) {
	defer func() {
		switch err {
		case nil:
		case io.EOF:
			b.returned.Trailer = b.original.Trailer // next sets the trailers of its own response at the end of the body
			if n, ok := grpcStatus(b.returned.Trailer); ok && b.rpc {
				b.code, b.err = collector.GRPCCode(n), cmp.Or(grpcFailure(n, true), b.err)
			}
			b.end(nil)
		default:
			b.end(err)
		}
	}()
	err = collector.ErrPanicked // err keeps this value if ReadCloser.Read panics
	return b.ReadCloser.Read(p)
}

func (b *body) Close() error {
	failed := collector.ErrPanicked // failed keeps this value if ReadCloser.Close panics
	defer func() { b.end(failed) }()
	err := b.ReadCloser.Close()
	failed = nil // callers may close a body before its end
	return err
}

// end ends the call. The error of the call is b.err if that is set, or else err. Later calls of end do nothing.
func (b *body) end(err error) {
	if b.err != nil {
		err = b.err
	}
	b.entry.ExitCode(err, b.code)
}
