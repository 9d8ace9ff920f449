package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/windowstat/windowstat/internal/logonce"
	"github.com/windowstat/windowstat/internal/redact"
)

// faults tells what the upstream does wrong, each kind once in a while.
type faults struct {
	logonce.Logger
	upstream *url.URL
	silent   atomic.Bool // it did not answer the last time
}

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
		name    *net.DNSError
		wrapped net.Error
		unknown *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case errors.As(err, &dial) && dial.Op == "dial", errors.As(err, &name), errors.As(err, &unknown), errors.As(err, &record), errors.As(err, &alert):
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

// answered is called with each answer.
func (f *faults) answered() {
	if f.silent.Load() && f.silent.CompareAndSwap(true, false) {
		f.Log(slog.LevelInfo, "the upstream answers again", "upstream", f.upstream)
	}
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
