package main

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

// server is a running HTTP server.
type server struct {
	http  *http.Server
	at    net.Addr
	ended chan struct{} // closed when it serves no more, for whatever reason
	err   error         // why, if that was not stop; read it after ended
}

// shutdownTimeout is how long requests may take to finish when a server stops.
const shutdownTimeout = 10 * time.Second

// listen starts a server on the address.
func listen(address string, h http.Handler, logger *slog.Logger, b bounds) (*server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	// No deadline for a whole request or response: both may stream.
	bounded := b.listener(listener, logger)
	return start(listener.Addr(), &http.Server{
		Handler:           netlimit.Bodies(h, b.Stall),
		ReadHeaderTimeout: b.header,
		IdleTimeout:       b.idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          logonce.Server(logger),

		DisableGeneralOptionsHandler: true, // OPTIONS * is for the upstream to answer
	}, func(h *http.Server) error { return h.Serve(bounded) }), nil
}

// listenAll listens on all addresses, or on none.
func listenAll(addresses []string) (all []net.Listener, err error) {
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, errors.Join(err, closeAll(all))
		}
		all = append(all, l)
	}
	return all, nil
}

func closeAll(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// start serves at an address. The function serve is http.Server.Serve on its listener, or does the same.
func start(at net.Addr, h *http.Server, serve func(*http.Server) error) *server {
	s := &server{http: h, at: at, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		if err := serve(s.http); !errors.Is(err, http.ErrServerClosed) {
			s.err = err
		}
	}()
	return s
}

// address is where it listens, the first of several.
func (s *server) address() string { return s.at.String() }

// stop waits for the requests that are running, but not for hijacked connections, and ends the server. The error is
// also that of a server that ended by itself.
func (s *server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(fmt.Errorf("requests were still running %v after the signal to stop", shutdownTimeout), s.http.Close())
	}
	<-s.ended
	return errors.Join(err, s.err)
}
