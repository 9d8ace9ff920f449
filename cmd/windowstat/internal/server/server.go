// Package server runs the HTTP servers of the commands. It bounds the resources of clients, and shuts down gracefully.
//
// [Bounds] limits the connections of a server, the connections of one host, and the time of each step of a request. The
// number of open files of a process is limited. It is divided at the start: some files for connections of the pages,
// two for each client of a proxy, and some for logs and pushes. Therefore a flood of clients does not prevent a scrape,
// or the next file of the log.
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

// Server is a running HTTP server with one or more listeners.
type Server struct {
	Ended context.Context // ends when the server has stopped

	http    *http.Server
	at      net.Addr       // address of the first listener
	serving errgroup.Group // goroutine for each listener, with the errors of Serve
}

// shutdownTimeout is the maximum time for running requests when a server stops.
const shutdownTimeout = 10 * time.Second

// headerSlop is the number of bytes that net/http reads in addition to http.Server.MaxHeaderBytes.
const headerSlop = 4 << 10

// Listen starts a server with the handler h on an address, host:port.
func Listen(address string, h http.Handler, logger *slog.Logger, b Bounds) (*Server, error) {
	// A client of HTTP/2 can send many small frames on one connection. Count them before net/http allocates memory.
	if b.HTTP2 {
		b.Intake = netlimit.LimitFrames
	}
	listeners, err := b.Listen(logger, address)
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(b.HTTP2)
	// No deadline for a whole request or response: both may stream.
	// The http.Server limits the parts of a request: ReadHeaderTimeout the headers, netlimit.Bodies the body, and
	// IdleTimeout the time until the next request.
	server := &http.Server{
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		Handler:           netlimit.Bodies(h, b.Stall),
		ReadHeaderTimeout: b.Header,
		IdleTimeout:       b.Idle,
		MaxHeaderBytes:    b.HeaderBytes - headerSlop,
		ErrorLog:          logonce.Server(logger),

		DisableGeneralOptionsHandler: true, // the handler responds to OPTIONS *
	}
	netlimit.LimitHeaderCount(server, maxHeaderCount)
	return Start(server, listeners...), nil
}

// Start starts a server on listeners, with TLS if h has a TLS configuration. The server has ended when it has stopped
// on all listeners.
func Start(h *http.Server, listeners ...net.Listener) *Server {
	// Ended is a context instead of a channel: callers combine it with other events by context.AfterFunc.
	ended, end := context.WithCancel(context.Background())
	s := &Server{Ended: ended, http: h, at: listeners[0].Addr()}
	// The certificate is in the TLS configuration, so ServeTLS needs no files.
	serve := h.Serve
	if h.TLSConfig != nil {
		serve = func(l net.Listener) error { return h.ServeTLS(l, "", "") }
	}
	for _, l := range listeners {
		s.serving.Go(func() error {
			if err := netlimit.Serve(l, serve); !errors.Is(err, http.ErrServerClosed) {
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

// Address returns the address of the first listener.
func (s *Server) Address() string { return s.at.String() }

// Stop waits for running requests, but not for hijacked connections, and ends the server. It also returns the error of
// a server that ended by itself.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	// Shutdown closes the listeners first, so no new client connects while running requests end.
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(fmt.Errorf("requests were still running %v after the signal to stop", shutdownTimeout),
			s.http.Close())
	}
	return errors.Join(err, s.serving.Wait())
}

// Bounds limits the resources of clients. Create it with [Pages] or [Own], or complete it with [Bounds.Fit].
type Bounds struct {
	// Bounds limits connections. Stall also limits the time without progress of a body whose sender or receiver is
	// idle.
	netlimit.Bounds
	Header time.Duration // maximum time for the headers of a request
	Idle   time.Duration // maximum time between two requests of a connection
	// HeaderBytes is the maximum number of bytes of the headers of a request, including its first line. Longer headers
	// receive a 431. Very short headers take thirty bytes of memory for each byte until the request ends.
	HeaderBytes int
	HTTP2       bool // also serve HTTP/2 without TLS, for gRPC
}

// Defaults of [Bounds].
const (
	DefaultHeader = 10 * time.Second
	DefaultStall  = time.Minute
	DefaultIdle   = 2 * time.Minute
	DefaultConns  = 8192 // or less, depending on the number of open files

	DefaultHeaderBytes = 16 << 10 // like Node.js; Tomcat accepts 8 KiB, nginx 32 KiB
)

const (
	maxPageConns  = 256
	reservedFiles = 64 // for logs, pushes and the runtime

	// maxStreams is the number of requests that an HTTP/2 connection carries at a time: the least that the protocol
	// recommends. Each takes a goroutine, also while only its headers have arrived.
	maxStreams = 100

	// maxHeaderCount is the limit of Apache and Tomcat. It has an effect since Go 1.27.
	maxHeaderCount = 100

	minHeaderBytes = 8 << 10
	maxHeaderBytes = 1 << 20 // default of net/http
)

// Pages returns the bounds of the pages. A proxy does not use the files of their connections.
func Pages() Bounds {
	conns := netlimit.Bounds{Conns: PageConns(OpenFiles()), Stall: DefaultStall, Intake: netlimit.LimitBytes}
	return Bounds{Bounds: conns, Header: DefaultHeader, Idle: DefaultIdle, HeaderBytes: DefaultHeaderBytes}
}

// Own returns the bounds of a server that only the process itself uses.
func Own() Bounds {
	b := Pages()
	b.Conns = 0
	return b
}

// PageConns returns the maximum number of connections of the pages: an eighth of the open files, at most maxPageConns.
// If clients of a proxy could use all files, scrapes would fail.
func PageConns(files int) int { return max(1, min(maxPageConns, files/8)) }

// maxConns returns the maximum number of clients of a proxy. Each client also needs a connection to the upstream.
func maxConns(files int) int { return max(0, (files-reservedFiles-PageConns(files))/2) }

// Fit checks the bounds of a proxy and sets defaults for a number of open files. The default of Conns is the maximum
// that the files allow, at most [DefaultConns]. The default of ConnsPerHost is half of Conns. Errors are
// [collector.OptionError]s.
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
	limit := maxConns(files)
	switch {
	case b.Conns < 0:
		wrong("Conns", "%d is negative", b.Conns)
	case b.Conns > limit || limit == 0:
		wrong("Conns", "%d is more than %d, the maximum for %d open files (ulimit -n)", b.Conns, limit, files)
	}
	b.Conns = cmp.Or(b.Conns, min(limit, DefaultConns))
	if b.ConnsPerHost < 0 {
		wrong("ConnsPerHost", "%d is negative", b.ConnsPerHost)
	}
	b.ConnsPerHost = cmp.Or(b.ConnsPerHost, max(1, b.Conns/2))
	return errors.Join(errs...)
}

// Listen listens on all addresses, or on none if one of them is in use. Each listener enforces the bounds. It logs
// a warning when it closes a connection to accept another one.
func (b Bounds) Listen(logger *slog.Logger, addresses ...string) (all []net.Listener, err error) {
	for _, address := range addresses {
		config := net.ListenConfig{KeepAlive: netlimit.KeepAlive}
		l, err := config.Listen(context.Background(), "tcp", address)
		if err != nil {
			return nil, errors.Join(err, Close(all))
		}
		once := logonce.Logger{To: logger}
		b.OnEvict = func(host netip.Prefix) {
			once.Log(slog.LevelWarn, "too many connections: closed the longest idle one of a host",
				"host", host, "address", l.Addr())
		}
		all = append(all, netlimit.Listen(l, b.Bounds))
	}
	return all, nil
}

// Close closes listeners without a server.
func Close(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}
