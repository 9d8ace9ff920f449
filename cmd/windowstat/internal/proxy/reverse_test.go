package proxy

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/internal/netlimit"
)

// start starts a proxy in front of an upstream, with the middleware that counts its requests.
func start(t *testing.T, upstream string) (addr string, c *collector.Collector) {
	t.Helper()
	u, err := ParseUpstream(upstream)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Upstream: u, Timeout: time.Minute,
		Bounds: server.Bounds{Bounds: netlimit.Bounds{Conns: 10, Stall: time.Minute}},
	}
	if c, err = collector.New(collector.Options{}); err != nil {
		t.Fatal(err)
	}
	h := httpstat.Route(c, "all", o.handler(slog.New(slog.DiscardHandler)))
	srv := httptest.NewServer(netlimit.Bodies(h, o.Bounds.Stall))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String(), c
}

// codes returns the number of calls by code when no call is in flight.
func codes(t *testing.T, c *collector.Collector) map[string]int64 {
	t.Helper()
	r := c.Resource("all")
	for deadline := time.Now().Add(10 * time.Second); r.InFlight() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a call stays in flight")
		}
	}
	got := map[string]int64{}
	for code, n := range r.View().Codes() {
		if n > 0 {
			got[code.String()] = n
		}
	}
	if n := r.Snapshot(nil).Total.Exception; n > 0 {
		got["exceptions"] = n
	}
	return got
}

func wantCodes(t *testing.T, c *collector.Collector, want map[string]int64) {
	t.Helper()
	if got := codes(t, c); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// dial returns a connection to the proxy on which a request was sent.
func dial(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return c
}

// startHTTP2 starts an HTTP/2 upstream whose certificate the transport of the proxy trusts.
func startHTTP2(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "cert.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file) // httptest uses one certificate, so it does not matter that it is read once
	return srv
}

// An HTTP/2 upstream may respond before it has read the body. The client did not get the end and the trailers of the
// response, and the call stayed in flight, until the client sent more.
func TestHTTP2UpstreamThatRespondsEarly(t *testing.T) {
	upstream := startHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = r.Body.Read(make([]byte, 1))
		if r.URL.Path == "/long" {
			_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
		}
		_, _ = io.WriteString(w, "done "+r.Proto)
		w.Header().Set("X-Sum", "1")
	})
	addr, c := start(t, upstream.URL)
	for _, path := range []string{"/short", "/long"} {
		conn := dial(t, addr, "POST "+path+" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if !strings.HasSuffix(string(body), "done HTTP/2.0") || err != nil || resp.Trailer.Get("X-Sum") != "1" {
			t.Errorf("%s: %d bytes, %v, trailers %v", path, len(body), err, resp.Trailer)
		}
	}
	wantCodes(t, c, map[string]int64{"200": 2}) // the bodies are still open
}

// The proxy sends 100 Continue when it reads the body, after a second without one from the upstream. The client got a
// second one when the upstream sent its own.
func TestOneContinue(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "late": 1200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				r := bufio.NewReader(conn)
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				time.Sleep(wait)
				fmt.Fprint(conn, "HTTP/1.1 100 Continue\r\n\r\n")
				_, _ = io.Copy(io.Discard, req.Body)
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
			}()
			addr, _ := start(t, "http://"+l.Addr().String())
			conn := dial(t, addr, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\n"+
				"Content-Length: 5\r\n\r\n")
			r := bufio.NewReader(conn)
			first, err := r.ReadString('\n')
			if first != "HTTP/1.1 100 Continue\r\n" || err != nil {
				t.Fatalf("%q, %v", first, err)
			}
			time.Sleep(wait / 2) // lets the upstream send its own first
			fmt.Fprint(conn, "hello")
			rest, err := io.ReadAll(r)
			if !strings.HasPrefix(string(rest), "\r\nHTTP/1.1 200 OK\r\n") || err != nil {
				t.Errorf("after the first 100 Continue: %q, %v", rest, err)
			}
		})
	}
}

// An HTTP/1.0 client takes an informational response for the final one, so it gets none.
func TestNoInformationalResponseToHTTP10(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
	}))
	defer upstream.Close()
	addr, _ := start(t, upstream.URL)
	for version, want := range map[string]string{"1.0": "HTTP/1.0 200 OK", "1.1": "HTTP/1.1 103 Early Hints"} {
		conn := dial(t, addr, "GET / HTTP/"+version+"\r\nHost: a\r\nConnection: close\r\n\r\n")
		got, _ := io.ReadAll(conn)
		if !strings.HasPrefix(string(got), want+"\r\n") {
			t.Errorf("HTTP/%s: %q, want %s", version, got, want)
		}
	}
}

// A gRPC response has HTTP status 200, and its own code in the trailers, or in the header if it has no body.
func TestGRPCCodes(t *testing.T) {
	upstream := startHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		switch r.URL.Path {
		case "/header":
			w.Header().Set("Grpc-Status", "5")
		case "/announced":
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = io.WriteString(w, "message")
			w.Header().Set("Grpc-Status", "13")
		case "/trailers":
			_, _ = io.WriteString(w, "message")
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		}
	})
	addr, c := start(t, upstream.URL)
	for _, path := range []string{"/header", "/announced", "/trailers", "/none"} {
		resp, err := http.Post("http://"+addr+path, "application/grpc", strings.NewReader("message"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	wantCodes(t, c, map[string]int64{"NotFound": 1, "Internal": 1, "OK": 1, "200": 1, "exceptions": 1})
}

// A client that hangs up before the response begins is a 499. One that hangs up later has the status that it got.
func TestClientThatHangsUp(t *testing.T) {
	entered := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			_, _ = io.WriteString(w, "part")
			w.(http.Flusher).Flush()
		} else {
			entered <- struct{}{}
		}
		<-r.Context().Done()
	}))
	defer upstream.Close()
	addr, c := start(t, upstream.URL)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
	if _, err := http.DefaultClient.Do(req); err == nil {
		t.Error("there is a response")
	}
	wantCodes(t, c, map[string]int64{"499": 1})
	resp, err := http.Get((&url.URL{Scheme: "http", Host: addr, Path: "/stream"}).String())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	wantCodes(t, c, map[string]int64{"499": 1, "200": 1})
}
