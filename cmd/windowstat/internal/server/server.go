// Package server runs HTTP servers beside other work: clients cannot hold what they need, and they end well.
//
// [Bounds] say how many connections a server has, how many of one host, and how long each step of a request may take. A process has
// a number of files that it may open, and shares it out at its start: so many for pages, two for each client of a proxy, and some for
// logs and pushes. So a flood of clients cannot keep the scraper out, nor the log from its next file.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/logonce"
	"github.com/windowstat/windowstat/internal/netlimit"
)

// Server is a running HTTP server, on one listener or on several.
type Server struct {
	Ended context.Context // until it serves no more

	http    *http.Server
	at      net.Addr       // of the first listener
	serving errgroup.Group // its error is why the server ended by itself
}

// shutdownTimeout is how long requests may take to finish when a server stops.
const shutdownTimeout = 10 * time.Second

// headerSlop is how much more of a request's headers net/http reads than http.Server.MaxHeaderBytes says.
const headerSlop = 4 << 10

// Listen starts a server of a handler on an address, host:port.
func Listen(address string, h http.Handler, logger *slog.Logger, b Bounds) (*Server, error) {
	listeners, err := b.Listen(logger, address)
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(b.HTTP2)
	// No deadline for a whole request or response: both may stream.
	return Start(&http.Server{
		Protocols:         protocols,
		Handler:           netlimit.Bodies(h, b.Stall),
		ReadHeaderTimeout: b.Header,
		IdleTimeout:       b.Idle,
		MaxHeaderBytes:    b.HeaderBytes - headerSlop,
		ErrorLog:          logonce.Server(logger),

		DisableGeneralOptionsHandler: true, // OPTIONS * is for the handler to answer
	}, listeners...), nil
}

// Start starts a server on listeners, with TLS if it has a configuration for it. It has ended when it serves on none of them.
func Start(h *http.Server, listeners ...net.Listener) *Server {
	ended, end := context.WithCancel(context.Background())
	s := &Server{Ended: ended, http: h, at: listeners[0].Addr()}
	serve := h.Serve
	if h.TLSConfig != nil {
		serve = func(l net.Listener) error { return h.ServeTLS(l, "", "") }
	}
	for _, l := range listeners {
		s.serving.Go(func() error {
			if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	go func() {
		_ = s.serving.Wait() // Stop returns its error
		end()
	}()
	return s
}

// Address is where it listens.
func (s *Server) Address() string { return s.at.String() }

// Stop waits for running requests, but not for hijacked connections, and ends the server. The error is also that of a server that
// ended by itself.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(fmt.Errorf("requests were running %v after the signal to stop", shutdownTimeout), s.http.Close())
	}
	return errors.Join(err, s.serving.Wait())
}

// Bounds are what a server allows those who connect to it. They must come from [Pages], [Own] or [Bounds.Fit].
type Bounds struct {
	// Of connections. Stall is also how long a body may make no progress while its sender or receiver does nothing.
	netlimit.Bounds
	Header time.Duration // how long the header of a request may take
	Idle   time.Duration // how long a connection may wait for its next request
	// HeaderBytes is how long the headers of a request may be, its first line included; more is refused with 431. A byte of tiny
	// headers takes thirty of memory for as long as the request lasts.
	HeaderBytes int
	HTTP2       bool // is spoken, too, without TLS, as gRPC does
}

// Defaults of [Bounds].
const (
	DefaultHeader = 10 * time.Second
	DefaultStall  = time.Minute
	DefaultIdle   = 2 * time.Minute
	DefaultConns  = 8192 // if as many files may be open

	DefaultHeaderBytes = 16 << 10 // as Node.js takes; Tomcat takes 8 KiB, and nginx 32
)

const (
	maxPageConns  = 256
	reservedFiles = 64 // for logs, pushes and what the runtime has open

	minHeaderBytes = 8 << 10
	maxHeaderBytes = 1 << 20 // which net/http takes by default
)

// Pages are the bounds of the pages, whose connections have files that a proxy leaves for them.
func Pages() Bounds {
	conns := netlimit.Bounds{Conns: PageConns(OpenFiles()), Stall: DefaultStall}
	return Bounds{Bounds: conns, Header: DefaultHeader, Idle: DefaultIdle, HeaderBytes: DefaultHeaderBytes}
}

// Own are those of a server whose only client is the process itself.
func Own() Bounds {
	b := Pages()
	b.Conns = 0
	return b
}

// PageConns is how many connections of the pages there are, if so many files may be open: an eighth of them, but not more than
// maxPageConns. A proxy that gave all of its files to clients could not be watched.
func PageConns(files int) int { return max(1, min(maxPageConns, files/8)) }

// maxConns is how many clients a proxy may have, each with a connection to the upstream.
func maxConns(files int) int { return max(0, (files-reservedFiles-PageConns(files))/2) }

// Fit fits the bounds of a proxy into the files that may be open, and checks them: without Conns there are as many as fit, without
// ConnsPerHost half of them. Errors are [collector.OptionError]s.
func (b *Bounds) Fit(files int) error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "server", Field: field, Err: fmt.Errorf(format, args...)})
	}
	for _, x := range []struct {
		field string
		d     time.Duration
	}{{"Header", b.Header}, {"Stall", b.Stall}, {"Idle", b.Idle}} {
		if x.d <= 0 {
			wrong(x.field, "%v is not positive", x.d)
		}
	}
	if b.HeaderBytes < minHeaderBytes || b.HeaderBytes > maxHeaderBytes {
		wrong("HeaderBytes", "%d is not between %d and %d", b.HeaderBytes, minHeaderBytes, maxHeaderBytes)
	}
	most := maxConns(files)
	switch {
	case b.Conns < 0:
		wrong("Conns", "%d is negative", b.Conns)
	case b.Conns > most || most == 0:
		wrong("Conns", "%d is more than %d, for which %d open files suffice (ulimit -n)", b.Conns, most, files)
	}
	b.Conns = cmp.Or(b.Conns, min(most, DefaultConns))
	if b.ConnsPerHost < 0 {
		wrong("ConnsPerHost", "%d is negative", b.ConnsPerHost)
	}
	b.ConnsPerHost = cmp.Or(b.ConnsPerHost, max(1, b.Conns/2))
	return errors.Join(errs...)
}

// Listen listens on all addresses, or on none: a process whose ports are taken in part has not started. Each listener keeps to the bounds,
// and logs when a connection is closed in favour of another.
func (b Bounds) Listen(logger *slog.Logger, addresses ...string) (all []net.Listener, err error) {
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, errors.Join(err, Close(all))
		}
		once := logonce.Logger{To: logger}
		b.OnEvict = func(host netip.Prefix) {
			once.Log(slog.LevelWarn, "too many connections: the longest idle one of a host was closed", "host", host, "address", l.Addr())
		}
		all = append(all, netlimit.Listen(l, b.Bounds))
	}
	return all, nil
}

// Close closes listeners that nothing serves on.
func Close(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}
