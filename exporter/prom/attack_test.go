package prom_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

var attack = flag.Bool("attack", false, "run the attack tests with more clients and for longer")

// attacked serves both pages, with the given number of resources, over connections with small buffers.
func attacked(t *testing.T, resources int) (c *collector.Collector, page *prom.Seconds, addr string) {
	t.Helper()
	c, now := clocked(t)
	for i := range resources {
		c.Resource(fmt.Sprint("resource ", i)).Block("")
	}
	page, err := prom.NewSeconds(c, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)
	mux.Handle("/metrics/seconds", page)
	server := httptest.NewUnstartedServer(mux)
	server.Listener = &smallBuffers{server.Listener}
	plain(server, page)
	t.Cleanup(server.Close)
	now.add(10 * time.Second)
	return c, page, server.Listener.Addr().String()
}

// slowly requests a page and does not read the response. The caller reads its first bytes.
func slowly(t *testing.T, addr, path string) client {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	return client{t, conn, bufio.NewReader(conn), "x"}
}

// Sixty clients request a page of three megabytes (less with -short) and do not read it. The scraper has the same
// address as these clients and gets its page every time.
func TestSlowReadersDoNotBlockScrapes(t *testing.T) {
	resources, scrapes := 400, 3
	switch {
	case *attack:
		resources, scrapes = 4_000, 60
	case testing.Short():
		resources = 100 // the page has some hundred kilobytes; the buffers hold a few
	}
	for _, path := range []string{"/metrics", "/metrics/seconds?window=10s", "/metrics/seconds?cursor=%d"} {
		t.Run(path, func(t *testing.T) {
			_, _, addr := attacked(t, resources)
			for i := range 60 {
				asked := path
				if path[len(path)-1] == 'd' {
					asked = fmt.Sprintf(path, i)
				}
				slow := slowly(t, addr, asked)
				if i < 10 { // the response has begun and is not complete
					if _, err := slow.buf.Peek(1); err != nil {
						t.Fatal(err)
					}
				}
			}
			scraper := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			for range scrapes {
				for _, page := range []string{"/metrics", "/metrics/seconds", "/metrics/seconds?cursor=mine"} {
					resp, err := scraper.Get("http://" + addr + page)
					if err != nil {
						t.Fatal(err)
					}
					n, err := io.Copy(io.Discard, resp.Body)
					if err != nil || resp.StatusCode != http.StatusOK ||
						n == 0 && page != "/metrics/seconds?cursor=mine" {
						t.Fatalf("%s: %s, %d bytes, %v", page, resp.Status, n, err)
					}
					_ = resp.Body.Close()
				}
				if *attack {
					time.Sleep(time.Second)
				}
			}
		})
	}
}

// A request announces a body and does not send it. No page waits for the body.
func TestPagesDoNotWaitForBodies(t *testing.T) {
	_, _, addr := attacked(t, 1)
	for _, path := range []string{"/metrics", "/metrics/seconds", "/metrics/seconds?cursor=a"} {
		for _, header := range []string{
			"Content-Length: 10", "Transfer-Encoding: chunked",
			"Content-Length: 10\r\nExpect: 100-continue",
		} {
			c := dial(t, addr)
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", path, header); err != nil {
				t.Fatal(err)
			}
			if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(c.buf, nil)
			if err != nil {
				t.Fatalf("%s with %q: %v", path, header, err)
			}
			if _, err = io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s with %q: %s, %v", path, header, resp.Status, err)
			}
			if _, err := c.buf.ReadByte(); err != io.EOF { //nolint:errorlint // as documented
				t.Errorf("%s with %q: the connection stays open: %v", path, header, err)
			}
		}
	}
}

// The WriteTimeout of a server ends a response that the page would allow to take a minute.
func TestWriteTimeoutOfTheServer(t *testing.T) {
	_, _, addr := watched(t, 500, func(s *httptest.Server, page *prom.Seconds) {
		s.Listener = &smallBuffers{s.Listener}
		s.Config.WriteTimeout = 2 * time.Second
		plain(s, page)
	})
	slow := slowly(t, addr, "/?cursor=a&metric=persecond_block")
	if _, err := slow.buf.Peek(1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	next := dial(t, addr)
	if err := next.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := next.get(); got != 10 { // this request waits for the slow response, at most until WriteTimeout
		t.Errorf("%d seconds, want 10", got)
	}
}
