package exporter_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter"
)

// pipes is a listener with a dial method for clients, without a network and buffers.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	close(l.closed)
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (l *pipes) dial(t *testing.T, request string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	l.conns <- server
	if _, err := io.WriteString(client, request); err != nil {
		t.Fatal(err)
	}
	return client
}

// ended waits until the server has closed the connection, and returns the duration and the response.
func ended(t *testing.T, c net.Conn) (after time.Duration, read string) {
	t.Helper()
	began := time.Now()
	b, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	return time.Since(began), string(b)
}

// served has the programs of the README with pages. Each function serves the pages on a listener until ctx ends.
// Programs that push have no port, and a program with its own registry has its own server.
var served = map[string]func(context.Context, *exporter.Exporter, net.Listener) error{
	"service": func(ctx context.Context, x *exporter.Exporter, l net.Listener) error { return x.Serve(ctx, l) },
	"own": func(ctx context.Context, x *exporter.Exporter, l net.Listener) error {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", x.Metrics)
		mux.Handle("GET /metrics/seconds", x.Seconds)
		mux.Handle("GET /live/", x.Live)
		server := &http.Server{
			Handler:           httpstat.Mux(x.Collector, mux),
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       time.Minute,
			ConnState:         x.ConnState,
		}
		return serveUntil(ctx, x, server, l)
	},
	"own, with Server": func(ctx context.Context, x *exporter.Exporter, l net.Listener) error {
		return serveUntil(ctx, x, x.Server(), l)
	},
}

func serveUntil(ctx context.Context, x *exporter.Exporter, server *http.Server, l net.Listener) error {
	go func() { _ = server.Serve(l) }()
	stop := x.Start()
	<-ctx.Done()
	return errors.Join(server.Shutdown(context.Background()), stop())
}

// For each way to serve the pages, a client that stops at any point is disconnected, and does not affect other clients.
func TestStalledClientsAreDisconnected(t *testing.T) {
	for name, serve := range served {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, err := exporter.New(exporter.Options{App: "shop", Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				for i := range 20 {
					x.Collector.Resource(fmt.Sprint("resource ", i)).Block("")
				}
				l := newPipes()
				ctx, cancel := context.WithCancel(t.Context())
				result := make(chan error)
				go func() { result <- serve(ctx, x, l) }()
				time.Sleep(2 * time.Second)

				for _, half := range []string{"", "G", "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Header: "} {
					if after, _ := ended(t, l.dial(t, half)); after > 15*time.Second {
						t.Errorf("%q keeps a connection open for %v", half, after)
					}
				}
				paths := []string{
					"/metrics", "/metrics/seconds", "/metrics/seconds?cursor=a", "/live/",
					"/live/seconds", "/live/stream",
				}
				for _, path := range paths {
					c := l.dial(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
					if after, read := ended(t, c); after > 15*time.Second || !strings.HasPrefix(read, "HTTP/1.1 400 ") {
						t.Errorf("%s, incomplete body: %v, %.100q", path, after, read)
					}
					if path == "/live/stream" {
						continue
					}
					after, read := ended(t, l.dial(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"))
					if after > 3*time.Minute || !strings.HasPrefix(read, "HTTP/1.1 200 ") {
						t.Errorf("%s, then no further request: %v, %.100q", path, after, read)
					}
				}
				if name != "own" { // a service with its own server sets its own limit on headers
					c := l.dial(t, "GET /metrics HTTP/1.1\r\n")
					go func() { _, _ = io.WriteString(c, "X-Large: "+strings.Repeat("x", 17<<10)+"\r\n\r\n") }()
					if _, read := ended(t, c); !strings.HasPrefix(read, "HTTP/1.1 431 ") {
						t.Errorf("large header: %.100q", read)
					}
					c = l.dial(t, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n")
					go func() { _, _ = io.WriteString(c, "X-Large: "+strings.Repeat("x", 15<<10)+"\r\n\r\n") }()
					if _, read := ended(t, c); !strings.HasPrefix(read, "HTTP/1.1 200 ") {
						t.Errorf("header of 15 KiB: %.100q", read)
					}
				}

				// Sixty clients per page that do not read.
				var slow []net.Conn
				for i := range 60 {
					for _, path := range paths {
						if strings.HasSuffix(path, "cursor=a") {
							path += fmt.Sprint(i)
						}
						slow = append(slow, l.dial(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"))
					}
				}
				time.Sleep(time.Second)
				for _, path := range []string{
					"/metrics", "/metrics/seconds?cursor=mine",
					"/metrics/seconds?window=2s", "/live/seconds",
				} {
					began := time.Now()
					c := l.dial(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
					resp, err := http.ReadResponse(bufio.NewReader(c), nil)
					if err != nil {
						t.Fatal(err)
					}
					n, err := io.Copy(io.Discard, resp.Body)
					if took := time.Since(began); err != nil || resp.StatusCode != http.StatusOK || n < 1000 ||
						took > 5*time.Second {
						t.Errorf("%s: %s, %d bytes, %v after %v", path, resp.Status, n, err, took)
					}
					_ = c.Close()
				}
				time.Sleep(70 * time.Second)
				for _, c := range slow {
					if after, _ := ended(t, c); after > 0 {
						t.Errorf("a slow reader keeps its connection open for another %v", after)
						break
					}
				}
				cancel()
				if err := <-result; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An Exporter is healthy while it is served, and ready while its exporters run. When it is no longer ready, it waits
// for calls in flight.
func TestHealth(t *testing.T) {
	x, err := exporter.New(exporter.Options{
		App: "shop", Drain: time.Minute, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, healthy, ready int) {
		t.Helper()
		for path, want := range map[string]int{"/-/healthy": healthy, "/-/ready": ready} {
			if got := status(x.Handler(), path); got != want {
				t.Errorf("%s: %s is %d, want %d", when, path, got, want)
			}
		}
	}
	until := func(want int) {
		t.Helper()
		for range 1000 {
			if status(x.Handler(), "/-/ready") == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("status of /-/ready is not %d", want)
	}
	expect("before it runs", http.StatusOK, http.StatusServiceUnavailable)
	call := x.Collector.Resource("a").Enter()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- x.Run(ctx) }()
	until(http.StatusOK)
	expect("while it runs", http.StatusOK, http.StatusOK)
	cancel()
	until(http.StatusServiceUnavailable)
	expect("while it waits for calls", http.StatusOK, http.StatusServiceUnavailable)
	call.Exit(nil)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if got := status(x.Handler(), "/debug/pprof/"); got != http.StatusNotFound {
		t.Errorf("profiles: %d", got)
	}
}

func status(h http.Handler, path string) int {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	return rec.Code
}
