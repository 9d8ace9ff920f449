// Package proxy implements the reverse proxy of windowstat proxy. It forwards requests and responses unchanged, and
// attributes each failure to the client or to the upstream.
//
// It serves a service that cannot be instrumented, which must respond as it would without a proxy. net/http/httputil
// forwards the requests. This package replaces what httputil does differently: it keeps the path byte for byte, neither
// guesses nor drops headers, and passes trailers and protocol switches. It keeps and extends what trusted proxies
// report about the client.
//
//	client --> net/http --> httpstat --> handler --> httputil.ReverseProxy --> transport --> upstream
//	                        counts       responseWriter, clientBody, forward
//
// A Collector counts the status of each response, so the status must show whose failure it was. A client that sends an
// incomplete body, or does not wait for the response, gets a status below 500. An upstream that cannot be reached,
// responds too late or breaks off is an exception of the service. Each kind is logged at most once a minute.
package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/internal/logonce"
	"github.com/windowstat/windowstat/internal/netlimit"
	"github.com/windowstat/windowstat/internal/redact"
)

// handler returns the reverse proxy. Errors of the client, and clients that hang up, get a status below 500, because
// they are not exceptions of the service.
func (o *Options) handler(logger *slog.Logger) http.Handler {
	faults := &faults{Logger: logonce.Logger{To: logger}, upstream: o.Upstream}
	reverse := &httputil.ReverseProxy{
		Rewrite:        o.forward,
		Transport:      o.transport(),
		ModifyResponse: faults.answered,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			a := w.(*responseWriter)
			a.end()
			w, body := a.ResponseWriter, a.body // the proxy's own response needs the headers of net/http
			switch {
			case body != nil && body.stalled.Load():
				http.Error(w, "the request's body does not come", http.StatusRequestTimeout)
			case r.Context().Err() != nil:
				w.WriteHeader(httpstat.StatusClientClosedRequest)
			case body != nil && body.broken.Load():
				http.Error(w, "the request's body cannot be read", http.StatusBadRequest)
			case strings.HasPrefix(err.Error(), "client tried to switch"):
				http.Error(w, "the request's Upgrade is not a protocol", http.StatusBadRequest)
			default:
				kind, status := fault(err)
				faults.log(kind, err)
				http.Error(w, kind, status)
			}
		},
		// Event streams and long polls send little at a time. A buffer would delay them until it is full.
		FlushInterval: -1, // flush each write
		ErrorLog:      log.New(faults, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			// Another panic is an error of this program, or a response that the upstream cut off. The server then
			// closes the connection, so the client sees that its response is incomplete.
			// ReverseProxy panics if it cannot copy the whole response. That is normal if the client has hung up.
			if v := recover(); v != nil && (v != http.ErrAbortHandler || r.Context().Err() == nil) {
				panic(v)
			}
		}()
		if status, why := refused(r); status != 0 {
			w.Header().Set("Connection", "close") // the next bytes are not a request, either
			http.Error(w, why, status)
			return
		}
		// Copy the request, because a handler must not change the request of its caller.
		a, with := &responseWriter{ResponseWriter: w, request: r}, *r
		if r.Body != nil && r.Body != http.NoBody {
			// Otherwise net/http reads the rest of the body when the response begins, and the upstream cannot get it.
			_ = http.NewResponseController(w).EnableFullDuplex()
			a.body = newClientBody(w, r)
			with.Body = a.body
		}
		reverse.ServeHTTP(a, &with)
	})
}

// transport returns a transport that opens at most Bounds.Conns connections to the upstream, one for each client.
//
// Two limits cover one exchange. While the request is written, a write fails if the upstream takes no byte for
// Bounds.Stall. From the end of the request on, Timeout limits the wait for the headers of the response. The body of
// the response may take any time.
func (o *Options) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: o.Timeout}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return netlimit.Conn(c, o.Bounds.Stall), nil
		},
		ResponseHeaderTimeout: o.Timeout,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second, // then the body is sent without 100 Continue of the upstream
		MaxConnsPerHost:       o.Bounds.Conns,
		MaxIdleConnsPerHost:   min(512, o.Bounds.Conns),
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // the client gets the encoding that its Accept-Encoding selects
	}
}

// faults logs failures of the upstream, each kind at most once a minute.
type faults struct {
	logonce.Logger
	upstream *url.URL
	silent   atomic.Bool // the upstream did not respond to the last request
}

// The kinds of failures are log messages, and the bodies of the responses to clients.
const (
	// Clients see only these texts. The log line also has the error of the transport, which may contain internal
	// addresses.
	unreachable = "the upstream does not respond: no connection"
	timedOut    = "the upstream does not respond in time"
	hungUp      = "the upstream closed a connection without a response"
	unreadable  = "the upstream's response cannot be read"
	brokenOff   = "the upstream cut off a response"
)

// fault returns the kind of failure that an error of the transport means, and the status for the client.
//
// A failed dial, handshake or certificate check is a missing connection, with status 502. A timeout of the transport
// has status 504. A connection that ends before the response begins has status 502, as does a response that is not
// valid HTTP. The timeout of a dial is checked first, so it counts as a missing connection.
func fault(err error) (kind string, status int) {
	var (
		dial    *net.OpError
		wrapped net.Error
		unknown *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case errors.As(err, &dial) && dial.Op == "dial",
		errors.As(err, &unknown), errors.As(err, &record), errors.As(err, &alert):
		return unreachable, http.StatusBadGateway
	case errors.As(err, &wrapped) && wrapped.Timeout():
		return timedOut, http.StatusGatewayTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		strings.Contains(err.Error(), "server closed idle connection"):
		return hungUp, http.StatusBadGateway
	}
	return unreadable, http.StatusBadGateway
}

// log logs a failure.
func (f *faults) log(kind string, err error) {
	if kind == unreachable || kind == timedOut {
		f.silent.Store(true)
	}
	f.Log(slog.LevelWarn, kind, "upstream", f.upstream, "err", redact.Error(err))
}

// answered is called with each response. It logs the first one after a failure.
//
// An HTTP/2 response may have a length and trailers. In HTTP/1 only chunks have trailers, so the length is removed.
//
// The load before the swap keeps the normal case free of writes to memory that all requests share.
func (f *faults) answered(r *http.Response) error {
	if r.ProtoMajor == 2 && len(r.Trailer) > 0 && r.Request.Method != http.MethodHead && r.Request.ProtoAtLeast(1, 1) {
		r.Header.Del("Content-Length")
	}
	if f.silent.Load() && f.silent.CompareAndSwap(true, false) {
		f.Log(slog.LevelInfo, "the upstream responds again", "upstream", f.upstream)
	}
	return nil
}

// Write receives the log lines of httputil.ReverseProxy, which reports errors while it copies a response.
//
// httputil reports these errors only to its logger, as text, because the status of the response has been sent. All its
// other lines, such as errors of clients, have the level debug.
func (f *faults) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if _, err, ok := strings.Cut(text, "read error during body copy: "); ok {
		f.log(brokenOff, errors.New(err))
	} else {
		f.To.Debug(redact.Error(errors.New(text)).Error())
	}
	return len(line), nil
}
