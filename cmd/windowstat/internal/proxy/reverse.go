// Package proxy is the reverse proxy of windowstat proxy: one that changes nothing on the way, and tells what the upstream does wrong
// from what clients do.
//
// It is for a service that cannot be instrumented. net/http/httputil has the transport of requests; this package has what differs from
// it, so that the service answers as it would without a proxy: the path goes on byte by byte as it came, headers are neither guessed nor
// dropped, trailers and protocol switches pass, and what proxies in front are trusted to say of the client is kept and grows.
//
// The status of a request is what a Collector counts, so whose fault a failure is must be right. A body that the client does not finish
// and a client that does not wait for the answer have a status below 500; an upstream that cannot be reached, answers late or breaks off
// is an exception of the service, and is logged once in a while by kind.
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

	"github.com/windowstat/windowstat/internal/logonce"
	"github.com/windowstat/windowstat/internal/netlimit"
	"github.com/windowstat/windowstat/internal/redact"
)

// statusClientGone is nginx's status for a client that did not wait for the answer. Nobody reads it, but it is no
// fault of the service, and so below 500.
const statusClientGone = 499

// handler returns the reverse proxy. Requests and responses pass as they are. What a client does wrong, or no longer waits for, is no
// exception of the service: its status is below 500.
func (o *Options) handler(logger *slog.Logger) http.Handler {
	faults := &faults{Logger: logonce.Logger{To: logger}, upstream: o.Upstream}
	reverse := &httputil.ReverseProxy{
		Rewrite:        o.forward,
		Transport:      o.transport(),
		ModifyResponse: faults.answered,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			a := w.(*answer)
			a.end()
			w, body := a.ResponseWriter, a.body // the answer is the proxy's own
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
		if status, why := refused(r); status != 0 {
			w.Header().Set("Connection", "close") // what comes next is no request either
			http.Error(w, why, status)
			return
		}
		a, with := &answer{ResponseWriter: w}, *r
		if r.Body != nil && r.Body != http.NoBody {
			// Or the server takes what is left of the body from the upstream when that begins to answer.
			_ = http.NewResponseController(w).EnableFullDuplex()
			a.body = newClientBody(r)
			with.Body = a.body
		}
		reverse.ServeHTTP(a, &with)
	})
}

// transport connects to the upstream at most once for each client.
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
		ExpectContinueTimeout: time.Second, // until the body is sent without the upstream's word
		MaxConnsPerHost:       o.Bounds.Conns,
		MaxIdleConnsPerHost:   min(512, o.Bounds.Conns),
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // the client gets what the upstream sends
	}
}

// faults tells what the upstream does wrong, each kind once in a while.
type faults struct {
	logonce.Logger
	upstream *url.URL
	silent   atomic.Bool // it did not answer the last time
}

// The kinds of faults, in the words of the log and of the answer to the client.
const (
	unreachable = "the upstream does not answer: no connection"
	late        = "the upstream does not answer in time"
	hungUp      = "the upstream ended a connection without an answer"
	unreadable  = "the upstream's answer cannot be read"
	brokenOff   = "the upstream broke off an answer"
)

// fault is what an error of a transport means, and the status that says so.
func fault(err error) (kind string, status int) {
	var (
		dial    *net.OpError
		wrapped net.Error
		unknown *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case errors.As(err, &dial) && dial.Op == "dial", errors.As(err, &unknown), errors.As(err, &record), errors.As(err, &alert):
		return unreachable, http.StatusBadGateway
	case errors.As(err, &wrapped) && wrapped.Timeout():
		return late, http.StatusGatewayTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		strings.Contains(err.Error(), "server closed idle connection"):
		return hungUp, http.StatusBadGateway
	}
	return unreadable, http.StatusBadGateway
}

// tell logs a fault.
func (f *faults) tell(kind string, err error) {
	if kind == unreachable || kind == late {
		f.silent.Store(true)
	}
	f.Log(slog.LevelWarn, kind, "upstream", f.upstream, "err", redact.Error(err))
}

// answered is called with each answer, which it leaves as it is.
func (f *faults) answered(*http.Response) error {
	if f.silent.Load() && f.silent.CompareAndSwap(true, false) {
		f.Log(slog.LevelInfo, "the upstream answers again", "upstream", f.upstream)
	}
	return nil
}

// Write is called by the reverse proxy's logger: with what happens to an answer on its way.
func (f *faults) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if _, err, ok := strings.Cut(text, "read error during body copy: "); ok {
		f.tell(brokenOff, errors.New(err))
	} else {
		f.To.Debug(redact.Error(errors.New(text)).Error())
	}
	return len(line), nil
}
