package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
)

// rawUpstream answers each connection with the given bytes, and returns the requests that it received.
func rawUpstream(t *testing.T, answer string) (address string, requests <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				head := readHead(bufio.NewReader(c))
				if head == "" {
					return
				}
				select {
				case got <- head:
				default: // the test does not read them
				}
				_, _ = io.WriteString(c, answer)
			}()
		}
	}()
	return l.Addr().String(), got
}

func readHead(r *bufio.Reader) string {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		if head.WriteString(line); err != nil || line == "\r\n" {
			return head.String()
		}
	}
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

// send writes a request and returns the complete response.
func send(t *testing.T, address, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(maxWait))
	_, _ = io.WriteString(c, request) // the response may end the connection before the request is complete
	b, _ := io.ReadAll(c)
	return string(b)
}

func startProxy(t *testing.T, upstream string, args ...string) (p *process, address string) {
	t.Helper()
	all := []string{"proxy", anyPort, "--upstream", "http://" + upstream, "--proxy.listen-address=127.0.0.1:0"}
	p = launch(t, append(all, args...)...)
	return p, strings.TrimPrefix(p.find(t, `proxy +(http\S+)`), "http://")
}

// The upstream receives the path and query of the client unchanged: an empty query, encoded slashes, dots.
func TestProxyPassesTheTargetUnchanged(t *testing.T) {
	t.Parallel()
	upstream, requests := rawUpstream(t, okAnswer)
	p, address := startProxy(t, upstream)
	based, below := startProxy(t, upstream+"/base%2F/")
	for target, want := range map[string]string{
		"/s?q=100%&page=2": "", "/s?a=1;b=2": "", "/s?": "", "/s??a=?": "", "/s?a=\"<{|}>": "", "/s?a=%zz&b=é": "",
		"/a%2Fb/%2e%2E/c": "", "/a/../b/./c//d": "", "//a": "", "//a%2fb//c?x": "", "/a{b}|\"<é>": "",
		"/a;b=c,d:e@f!$&'()*+=~": "",
		"/a#b?c#d":               "", "/%C3%A9%20+": "",
		"http://elsewhere/a//b?c=%": "/a//b?c=%", "http://elsewhere": "/", "http://elsewhere?a": "/?a",
	} {
		if want == "" {
			want = target
		}
		for front, prefix := range map[string]string{address: "", below: "/base%2F"} {
			send(t, front, "GET "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			select {
			case got := <-requests:
				if line, _, _ := strings.Cut(got, "\r\n"); line != "GET "+prefix+want+" HTTP/1.1" {
					t.Errorf("%s arrives as %q", target, line)
				}
			default:
				t.Errorf("%s does not arrive", target)
			}
		}
	}
	// A path that begins with // would be a host, unless characters that are invalid in a path are encoded.
	send(t, address, "GET //[a]%2f!$&'()*+,;=:@~^`{|}é\"#?\" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	const escaped = "GET //[a]%2f!$&'()*+,;=:@~%5E%60%7B%7C%7D%C3%A9%22%23?\" HTTP/1.1\r\n"
	if got := <-requests; !strings.HasPrefix(got, escaped) {
		t.Errorf("%q", got)
	}
	send(t, address, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if got := <-requests; !strings.HasPrefix(got, "OPTIONS * HTTP/1.1\r\n") {
		t.Errorf("%q", got)
	}
	p.end(t)
	based.end(t)
}

// Headers of a trusted proxy about the client are kept. Other clients cannot set them.
func TestProxyBehindAnother(t *testing.T) {
	t.Parallel()
	upstream, requests := rawUpstream(t, okAnswer)
	const request = "GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nX-Forwarded-For: 192.0.2.7\r\n" +
		"X-Forwarded-For: 192.0.2.8\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: www.shop\r\n" +
		"X-Forwarded-Port: 443\r\nForwarded: for=192.0.2.7;proto=https\r\n\r\n"
	for _, tc := range []struct {
		args, request string
		want          []string
	}{
		{
			"--proxy.trusted-proxies=127.0.0.0/8", request,
			[]string{
				"X-Forwarded-For: 192.0.2.7, 192.0.2.8, 127.0.0.1", "X-Forwarded-Proto: https",
				"X-Forwarded-Host: www.shop",
				"X-Forwarded-Port: 443", "Forwarded: for=192.0.2.7;proto=https, for=127.0.0.1",
			},
		},
		{
			"--proxy.trusted-proxies=127.0.0.1", "GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n",
			[]string{"X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: shop"},
		},
		{
			"--proxy.trusted-proxies=10.0.0.0/8", request,
			[]string{"X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: shop"},
		},
	} {
		p, address := startProxy(t, upstream, tc.args)
		send(t, address, tc.request)
		got, n := <-requests, 0
		for line := range strings.Lines(got) {
			if strings.Contains(line, "orwarded") {
				n++
			}
		}
		for _, want := range tc.want {
			if !strings.Contains(got, "\r\n"+want+"\r\n") {
				t.Errorf("%s: no %q in %q", tc.args, want, got)
			}
		}
		if n != len(tc.want) {
			t.Errorf("%s: more than %q in %q", tc.args, tc.want, got)
		}
		p.end(t)
	}
}

// The server adds nothing to a response: no date, and no content type.
func TestProxyAddsNothingToAResponse(t *testing.T) {
	t.Parallel()
	upstream, _ := rawUpstream(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"+
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-A: 1\r\nX-A: 2\r\nX-B:\r\n\r\n<html>")
	p, address := startProxy(t, upstream)
	got := send(t, address, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	const want = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-A: 1\r\nX-A: 2\r\nX-B: \r\nConnection: close\r\n\r\n<html>"
	if got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	p.end(t)
}

// 400 failures of an upstream for the same reason are one log message with the reason. It contains no token of a URL.
func TestProxyLogsUpstreamErrorsOnce(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	const (
		secret      = "hunter2"
		unreachable = "the upstream does not respond: no connection"
		hungUp      = "the upstream closed a connection without a response"
		unreadable  = "the upstream's response cannot be read"
		brokenOff   = "the upstream cut off a response"
		late        = "the upstream does not respond in time"
	)
	for message, tc := range map[string]struct {
		answer string
		status string
	}{
		unreachable: {"-", "502"},
		hungUp:      {"", "502"},
		unreadable:  {"GET /?token=" + secret + " HTTP/1.1\r\n\r\n", "502"},
		brokenOff:   {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + secret, "200"},
		late:        {"wait", "504"},
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			upstream, n := closed.Addr().String(), 400
			switch tc.answer {
			case "-":
			case "wait":
				l, err := net.Listen("tcp", "127.0.0.1:0") // does not accept
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				upstream, n = l.Addr().String(), 2
			default:
				upstream, _ = rawUpstream(t, tc.answer)
			}
			timeout := time.Minute // except for an upstream that does not respond
			if message == late {
				timeout = 3 * time.Second // enough for a connection on a slow machine
			}
			p, address := startProxy(t, upstream, fmt.Sprint("--proxy.upstream-timeout=", timeout), "--log.level=debug")
			before, began := strings.Count(p.output(), "\n"), time.Now()
			for range n {
				got := send(t, address, "POST /?token="+secret+" HTTP/1.1\r\nHost: x\r\n"+
					"Content-Length: 0\r\nConnection: close\r\n\r\n")
				if !strings.HasPrefix(got, "HTTP/1.1 "+tc.status) {
					t.Fatalf("%q", got)
				}
			}
			p.end(t)
			out := p.output()
			minutes := int(time.Since(began)/time.Minute) + 1 // on a slow machine
			if n := strings.Count(out, message); n == 0 || n > minutes {
				t.Errorf("%q is logged %d times", message, n)
			}
			for _, other := range []string{unreachable, hungUp, unreadable, brokenOff, late} {
				if other != message && strings.Contains(out, `"`+other+`"`) {
					t.Errorf("%q is logged, too", other)
				}
			}
			if strings.Contains(out, secret) || strings.Contains(out, "token") {
				t.Error("a secret is logged")
			}
			if lines := strings.Count(out, "\n") - before; lines > 2+minutes || t.Failed() {
				t.Errorf("%d lines:\n%s", lines, out)
			}
		})
	}
}

// Errors of clients are not logged.
func TestProxyDoesNotLogClientErrors(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a response that begins before the end of the body would pass
	}))
	defer upstream.Close()
	p, address := startProxy(t, upstream.Listener.Addr().String())
	before := p.output()
	for request, want := range map[string]string{
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n":     "400",
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: \xff\r\n\r\n": "400",
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*128<<10) + "\r\n":       "431",
		"nonsense\r\n\r\n": "400",
	} {
		if got := send(t, address, request); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%.60q: %q", request, got)
		}
	}
	if after := p.output(); after != before {
		t.Errorf("%s", after)
	}
	p.end(t)
}

// Headers of exactly 16 KiB pass, and the flag allows more.
func TestProxyBoundsHeaders(t *testing.T) {
	t.Parallel()
	upstream, _ := rawUpstream(t, okAnswer)
	ofBytes := func(n int) string {
		const head, end = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: ", "\r\n\r\n"
		return head + strings.Repeat("x", n-len(head)-len(end)) + end
	}
	for most, args := range map[int][]string{16 << 10: nil, 40_000: {"--proxy.max-header-bytes=40000"}} {
		p, address := startProxy(t, upstream, args...)
		for n, want := range map[int]string{most: "200", most + 1: "431"} {
			if got := send(t, address, ofBytes(n)); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
				t.Errorf("%d of %d bytes: %.100q", n, most, got)
			}
		}
		p.end(t)
	}
}

// Data after an unreadable body is not a request, whether the response begins before it or after.
func TestProxyTakesNoRequestOutOfABrokenBody(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ""} {
		upstream, requests := rawUpstream(t, answer)
		p, address := startProxy(t, upstream)
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
		<-requests
		if answer != "" {
			_, _ = io.ReadFull(c, make([]byte, 12)) // its status
		}
		fmt.Fprint(c, "nonsense\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(maxWait))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection stays open")
		}
		select {
		case got := <-requests:
			t.Errorf("%q", got)
		default:
		}
		p.end(t)
	}
}

// A half-sent body receives a response, and its connections are closed on both sides.
func TestProxyHalfSentBody(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, c)
		}
		ended <- err
	}()
	p, address := startProxy(t, l.Addr().String(), "--proxy.stall-timeout=200ms", "--route=POST /u")
	got := send(t, address, "POST /u HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
	if !strings.HasPrefix(got, "HTTP/1.1 408") {
		t.Errorf("%q", got)
	}
	select {
	case <-ended:
	case <-time.After(maxWait):
		t.Error("the upstream's connection stays open")
	}
	metrics := settled(t, p.find(t, `metrics +(http\S+)`))
	if !strings.Contains(metrics, `windowstat_exception_total{resource="POST /u"} 0`+"\n") {
		t.Error("counted as an exception")
	}
	p.end(t)
}

// While one host holds all connections, another host is served. So is the page, which has its own connections.
func TestProxyFloodOfOneHost(t *testing.T) {
	t.Parallel()
	upstream, _ := rawUpstream(t, okAnswer)
	p, address := startProxy(t, upstream, "--proxy.max-connections=20", "--proxy.max-connections-per-host=15")
	page := p.find(t, `metrics +(http\S+)`)
	pages := strings.TrimSuffix(strings.TrimPrefix(page, "http://"), "/metrics")
	began := time.Now()
	var flood []net.Conn
	// The pages refuse bodies immediately, so the test sends half of the headers.
	for _, x := range []struct{ to, half string }{
		{address, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"},
		{pages, "GET /metrics HTTP/1.1\r\nHost:"},
	} {
		for range 400 {
			c, err := net.Dial("tcp", x.to)
			if errors.Is(err, syscall.ECONNRESET) {
				continue // in excess of what the host may replace
			}
			if err != nil {
				t.Fatal(err)
			}
			flood = append(flood, c)
			fmt.Fprint(c, x.half)
		}
	}
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := http.Client{Transport: &http.Transport{DialContext: other.DialContext}}
	for _, url := range []string{"http://" + address + "/", page} {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Errorf("%d, %v", resp.StatusCode, err)
		}
		resp.Body.Close()
	}
	p.find(t, `(?s)(too many connections.*too many connections)`)
	minutes := int(time.Since(began)/time.Minute) + 1 // on a slow machine
	if n := strings.Count(p.output(), "too many connections"); n > 2*minutes {
		t.Errorf("logged %d times:\n%s", n, p.output())
	}
	for _, c := range flood {
		c.Close()
	}
	p.end(t)
}

func TestProxyBoundsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range boundFlags(&server.Bounds{}) {
		if name := f.Name; !strings.Contains(string(page), "`--"+name+"`") {
			t.Errorf("docs/proxy.md does not mention --%s", name)
		}
	}
	for _, n := range []int{server.DefaultConns, 64, 256, server.DefaultHeaderBytes >> 10} {
		if !strings.Contains(string(page), fmt.Sprint(n)) {
			t.Errorf("docs/proxy.md does not mention %d", n)
		}
	}
}
