package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"time"
)

// statusClientGone is nginx's status for a client that did not wait for the answer. Nobody reads it, but it is no
// fault of the service, and so below 500.
const statusClientGone = 499

// handler is the reverse proxy. What a client does wrong, or no longer waits for, is no exception of the service.
func (p proxy) handler() http.Handler {
	var down atomic.Bool // whether the upstream did not answer the last time
	reverse := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.upstream)
			r.Out.Host = r.In.Host
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
			if r.Out.Body != nil {
				r.Out.Body = &clientBody{ReadCloser: r.Out.Body}
			}
		},
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: p.timeout}).DialContext,
			ResponseHeaderTimeout: p.timeout,
			TLSHandshakeTimeout:   10 * time.Second,
			MaxIdleConnsPerHost:   512,
			IdleConnTimeout:       90 * time.Second,
			ForceAttemptHTTP2:     true,
			DisableCompression:    true, // the client gets what the upstream sends
		},
		ModifyResponse: func(*http.Response) error {
			if down.Load() && down.CompareAndSwap(true, false) {
				p.logger.Info("the upstream answers again", "upstream", p.upstream)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				w.WriteHeader(statusClientGone)
				return
			}
			if body, ok := r.Body.(*clientBody); ok && body.broken.Load() {
				http.Error(w, "the request's body cannot be read", http.StatusBadRequest)
				return
			}
			if down.CompareAndSwap(false, true) {
				p.logger.Warn("the upstream does not answer", "upstream", p.upstream, "err", err)
			}
			http.Error(w, "the upstream did not answer", http.StatusBadGateway)
		},
		ErrorLog: slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			// The reverse proxy aborts an answer that it cannot copy to its end. If the client has gone, that is why.
			if v := recover(); v != nil && (v != http.ErrAbortHandler || r.Context().Err() == nil) {
				panic(v)
			}
		}()
		reverse.ServeHTTP(w, r)
	})
}

// clientBody is a request's body that remembers whether the client sent it badly.
type clientBody struct {
	io.ReadCloser
	broken atomic.Bool
}

func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.broken.Store(true)
	}
	return n, err
}
