package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Regression: the proxy lost data that a client sent in the packet of an upgrade request, and websockets hung. Both
// sides can close their direction separately.
func TestProxyKeepsBytesAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	received := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		readHead(r)
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello")
		_ = c.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(r)
		received <- string(b)
	}()
	p, address := startProxy(t, l.Addr().String())
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(maxWait))
	early := strings.Repeat("early ", 300)
	fmt.Fprint(c, "GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"+early)
	r := bufio.NewReader(c)
	if got := readHead(r); !strings.HasPrefix(got, "HTTP/1.1 101 ") {
		t.Errorf("%q", got)
	}
	if got, err := io.ReadAll(r); string(got) != "hello" || err != nil {
		t.Errorf("%.100q, %v", got, err)
	}
	fmt.Fprint(c, "late")
	_ = c.(*net.TCPConn).CloseWrite()
	select {
	case got := <-received:
		if got != early+"late" {
			t.Errorf("%.100q", got)
		}
	case <-time.After(maxWait):
		t.Error("nothing is received")
	}
	p.end(t)
}

// A 304 response keeps the headers Content-Length and Content-Type, which describe the cached response. net/http would
// remove them.
func TestProxyKeepsTheLengthOfNotModified(t *testing.T) {
	t.Parallel()
	upstream, _ := rawUpstream(t,
		"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 1234\r\nContent-Type: text/x\r\n\r\n")
	p, address := startProxy(t, upstream)
	for _, method := range []string{"GET", "HEAD"} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(maxWait))
		r := bufio.NewReader(c)
		for range 2 { // on the same connection
			fmt.Fprintf(c, "%s /a HTTP/1.1\r\nHost: x\r\nIf-None-Match: \"x\"\r\n\r\n", method)
			resp, err := http.ReadResponse(r, &http.Request{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if h := resp.Header; resp.StatusCode != 304 || h.Get("Content-Length") != "1234" ||
				h.Get("Content-Type") != "text/x" ||
				resp.Close {
				t.Errorf("%s: %s, %v", method, resp.Status, h)
			}
		}
	}
	p.end(t)
}

// An untrusted client cannot set headers about itself, in trailers or with names that a service may treat as equal.
// Other announced trailers pass.
func TestUntrustedClientsCannotSetForwardedHeaders(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	requests := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(c)
			got := readHead(r)
			for got += "\n"; !strings.HasSuffix(got, "\r\n\r\n"); {
				line, err := r.ReadString('\n')
				if got += line; err != nil {
					break
				}
			}
			requests <- got
			_, _ = io.WriteString(c, okAnswer)
			c.Close()
		}
	}()
	p, address := startProxy(t, l.Addr().String())
	trusting, trusted := startProxy(t, l.Addr().String(), "--proxy.trusted-proxies=127.0.0.0/8")
	for _, to := range []string{address, trusted} {
		got := send(
			t,
			to,
			"POST / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nX_Forwarded_For: 192.0.2.7\r\n"+
				"x-forwarded_Proto: 192.0.2.7\r\nX.Forwarded.Host: 192.0.2.7\r\n"+
				"X_Other: 1\r\nTrailer: X-Forwarded-For, X-Sum, x_forwarded_for, Forwarded\r\nTransfer-Encoding: "+
				"chunked\r\n\r\n5\r\nhello\r\n0\r\n"+
				"X-Forwarded-For: 192.0.2.7\r\nX-Sum: 1\r\nX_forwarded_for: 192.0.2.7\r\nForwarded: "+
				"for=192.0.2.7\r\nX-Late: 1\r\nContent-Length: 3\r\n\r\n",
		)
		if !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Fatalf("%q", got)
		}
		request := <-requests
		for _, word := range []string{"192.0.2.7", "X-Late", "Content-Length"} {
			if strings.Contains(request, word) {
				t.Errorf("%s passes: %q", word, request)
			}
		}
		for _, line := range []string{
			"X-Forwarded-For: 127.0.0.1", "X_other: 1", "Trailer: X-Sum",
			"0\r\nX-Sum: 1\r\n",
		} {
			if !strings.Contains(request, line+"\r\n") {
				t.Errorf("no %q in %q", line, request)
			}
		}
	}
	p.end(t)
	trusting.end(t)
}

// Requests that no service can handle are refused. Refusals do not count as exceptions.
func TestProxyRefusesOtherRequests(t *testing.T) {
	t.Parallel()
	upstream, requests := rawUpstream(t, okAnswer)
	p, address := startProxy(t, upstream)
	for request, want := range map[string]string{
		"CONNECT shop:443 HTTP/1.1\r\nHost: shop:443\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n": "405",
		"CONNECT /a HTTP/1.1\r\nHost: shop\r\n\r\n":                                                    "405",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                                             "400",
		"GET * HTTP/1.1\r\nHost: shop\r\n\r\n":                                                         "400",
	} {
		if got := send(t, address, request); !strings.HasPrefix(got, "HTTP/1.1 "+want+" ") ||
			strings.Count(got, "HTTP/1.") != 1 {
			t.Errorf("%q: %q", request, got)
		}
	}
	select {
	case got := <-requests:
		t.Errorf("%q arrives", got)
	default:
	}
	if metrics := settled(t, p.find(t, `metrics +(http\S+)`)); !strings.Contains(
		metrics,
		`windowstat_exception_total{resource="unmatched"} 0`+"\n",
	) {
		t.Error("counted as exceptions")
	}
	// A request of HTTP/1.0 without a Host header receives the Host of the upstream, and no X-Forwarded-Host.
	if got := send(t, address, "GET /a HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 200 ") {
		t.Errorf("%q", got)
	}
	if got := <-requests; !strings.Contains(got, "\r\nHost: "+upstream+"\r\n") ||
		strings.Contains(got, "X-Forwarded-Host") {
		t.Errorf("%q", got)
	}
	p.end(t)
}
