// Package server runs HTTP servers beside other work: clients cannot hold what they need, and they end well.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/internal/logonce"
	"github.com/windowstat/windowstat/internal/netlimit"
)

// Server is a running HTTP server.
type Server struct {
	http  *http.Server
	at    net.Addr
	ended chan struct{}
	err   error // why it ended by itself; read it after ended
}

// shutdownTimeout is how long requests may take to finish when a server stops.
const shutdownTimeout = 10 * time.Second

// headerSlop is how much more of a request's headers net/http reads than http.Server.MaxHeaderBytes says.
const headerSlop = 4 << 10

// Listen starts a server of a handler on an address, host:port.
func Listen(address string, h http.Handler, logger *slog.Logger, b Bounds) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	bounded := b.Listener(l, logger)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(b.HTTP2)
	// No deadline for a whole request or response: both may stream.
	return Start(l.Addr(), &http.Server{
		Protocols:         protocols,
		Handler:           netlimit.Bodies(h, b.Stall),
		ReadHeaderTimeout: b.Header,
		IdleTimeout:       b.Idle,
		MaxHeaderBytes:    b.HeaderBytes - headerSlop,
		ErrorLog:          logonce.Server(logger),

		DisableGeneralOptionsHandler: true, // OPTIONS * is for the handler to answer
	}, func(h *http.Server) error { return h.Serve(bounded) }), nil
}

// Start starts a server at an address. The function serve is [http.Server.Serve] on its listener, or does the same.
func Start(at net.Addr, h *http.Server, serve func(*http.Server) error) *Server {
	s := &Server{http: h, at: at, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		if err := serve(s.http); !errors.Is(err, http.ErrServerClosed) {
			s.err = err
		}
	}()
	return s
}

// Address is where it listens.
func (s *Server) Address() string { return s.at.String() }

// Ended is closed when it serves no more.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Stop waits for running requests, but not for hijacked connections, and ends the server. The error is also that of a server that
// ended by itself.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(fmt.Errorf("requests were running %v after the signal to stop", shutdownTimeout), s.http.Close())
	}
	<-s.ended
	return errors.Join(err, s.err)
}
