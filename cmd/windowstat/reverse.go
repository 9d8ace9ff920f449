package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/internal/netlimit"
)

// statusClientGone is nginx's status for a client that did not wait for the answer. Nobody reads it, but it is no
// fault of the service, and so below 500.
const statusClientGone = 499

// handler is the reverse proxy. What a client does wrong, or no longer waits for, is no exception of the service.
func (p proxy) handler() http.Handler {
	faults := &faults{teller: teller{logger: p.logger}, upstream: p.upstream}
	reverse := &httputil.ReverseProxy{
		Rewrite:   p.forward,
		Transport: p.transport(),
		ModifyResponse: func(*http.Response) error {
			faults.answered()
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if a, ok := w.(*answer); ok {
				w = a.ResponseWriter // the answer is the proxy's own
			}
			body, _ := r.Body.(*clientBody)
			switch {
			case body != nil && body.stalled.Load():
				http.Error(w, "the request's body does not come", http.StatusRequestTimeout)
			case r.Context().Err() != nil:
				w.WriteHeader(statusClientGone)
			case body != nil && body.broken.Load():
				http.Error(w, "the request's body cannot be read", http.StatusBadRequest)
			case strings.HasPrefix(err.Error(), "client tried to switch"):
				http.Error(w, "the request's Upgrade is not a protocol", http.StatusBadRequest)
			default:
				kind, status := fault(err)
				faults.tell(kind, err)
				http.Error(w, kind, status)
			}
		},
		FlushInterval: -1, // nothing is held back
		ErrorLog:      log.New(faults, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			// The reverse proxy aborts an answer that it cannot copy to its end. If the client has gone, that is why.
			if v := recover(); v != nil && (v != http.ErrAbortHandler || r.Context().Err() == nil) {
				panic(v)
			}
		}()
		// Or the server takes what is left of the body from the upstream when that begins to answer.
		_ = http.NewResponseController(w).EnableFullDuplex()
		reverse.ServeHTTP(&answer{w}, r)
	})
}

// transport connects to the upstream at most once for each client.
func (p proxy) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: p.timeout}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return netlimit.Conn(c, p.bounds.Stall), nil
		},
		ResponseHeaderTimeout: p.timeout,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second, // until the body is sent without the upstream's word
		MaxConnsPerHost:       p.bounds.Conns,
		MaxIdleConnsPerHost:   min(512, p.bounds.Conns),
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // the client gets what the upstream sends
	}
}

// answer is the upstream's, to which the server adds nothing of its own.
type answer struct{ http.ResponseWriter }

// Unwrap lets http.ResponseController reach the wrapped writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if h := a.Header(); status >= http.StatusOK {
		for _, name := range []string{"Date", "Content-Type"} {
			if _, has := h[name]; !has {
				h[name] = nil
			}
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

// clientBody is a request's body that remembers whether the client sent it badly, or not.
type clientBody struct {
	io.ReadCloser
	broken, stalled atomic.Bool
}

func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.broken.Store(true)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			b.stalled.Store(true)
		}
	}
	return n, err
}
