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

// pipes are a listener and the clients that dial it, without a network and its buffers.
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

// ended is how long it takes until the server has closed the connection.
func ended(t *testing.T, c net.Conn) (after time.Duration, read string) {
	t.Helper()
	began := time.Now()
	b, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	return time.Since(began), string(b)
}

// served are the programs of the README that have the pages: how each serves them on a listener until ctx ends. Those that push
// have no port, and a registry of one's own has a server of one's own.
var served = map[string]func(context.Context, *exporter.Exporter, net.Listener) error{
	"service": func(ctx context.Context, x *exporter.Exporter, l net.Listener) error { return x.Serve(ctx, l) },
	"own": func(ctx context.Context, x *exporter.Exporter, l net.Listener) error {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", x.Metrics)
		mux.Handle("GET /metrics/seconds", x.Seconds)
		mux.Handle("GET /live/", x.Live)
		server := &http.Server{Handler: httpstat.Mux(x.Collector, mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, ConnState: x.ConnState}
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

// However the pages are served, a client that stops in the middle of anything is disconnected, and costs nobody else anything.
func TestNobodyHoldsTheDoor(t *testing.T) {
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
						t.Errorf("%q holds a connection for %v", half, after)
					}
				}
				paths := []string{"/metrics", "/metrics/seconds", "/metrics/seconds?cursor=a", "/live/", "/live/seconds", "/live/stream"}
				for _, path := range paths {
					c := l.dial(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
					if after, read := ended(t, c); after > 15*time.Second || !strings.HasPrefix(read, "HTTP/1.1 400 ") {
						t.Errorf("%s, half a body: %v, %.100q", path, after, read)
					}
					if path == "/live/stream" {
						continue
					}
					if after, read := ended(t, l.dial(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")); after > 3*time.Minute || !strings.HasPrefix(read, "HTTP/1.1 200 ") {
						t.Errorf("%s, and then nothing: %v, %.100q", path, after, read)
					}
				}
				if name != "own" { // whose headers are its own affair
					c := l.dial(t, "GET /metrics HTTP/1.1\r\n")
					go func() { _, _ = io.WriteString(c, "X-Large: "+strings.Repeat("x", 17<<10)+"\r\n\r\n") }()
					if _, read := ended(t, c); !strings.HasPrefix(read, "HTTP/1.1 431 ") {
						t.Errorf("a large header: %.100q", read)
					}
					c = l.dial(t, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n")
					go func() { _, _ = io.WriteString(c, "X-Large: "+strings.Repeat("x", 15<<10)+"\r\n\r\n") }()
					if _, read := ended(t, c); !strings.HasPrefix(read, "HTTP/1.1 200 ") {
						t.Errorf("a header of 15 KiB: %.100q", read)
					}
				}

				// Readers that do not read: sixty of each page.
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
				for _, path := range []string{"/metrics", "/metrics/seconds?cursor=mine", "/metrics/seconds?window=2s", "/live/seconds"} {
					began := time.Now()
					c := l.dial(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
					resp, err := http.ReadResponse(bufio.NewReader(c), nil)
					if err != nil {
						t.Fatal(err)
					}
					n, err := io.Copy(io.Discard, resp.Body)
					if took := time.Since(began); err != nil || resp.StatusCode != http.StatusOK || n < 1000 || took > 5*time.Second {
						t.Errorf("%s: %s, %d bytes, %v after %v", path, resp.Status, n, err, took)
					}
					_ = c.Close()
				}
				time.Sleep(70 * time.Second)
				for _, c := range slow {
					if after, _ := ended(t, c); after > 0 {
						t.Errorf("a slow reader holds its connection for %v more", after)
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

// Healthy means that it is served, ready that the ways out run; what is in flight is awaited when it is ready no more.
func TestHealth(t *testing.T) {
	x, err := exporter.New(exporter.Options{App: "shop", Drain: time.Minute, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
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
		t.Errorf("it is not %d", want)
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
