package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the tables of docs/proxy.md and docs/security.md, and docs/live.png")

// A passage is a request through windowstat proxy and through nginx, and the response of the upstream to both.
type passage struct {
	name, request, answer string // an empty answer means a plain response
}

const originDate = "Sun, 06 Nov 1994 08:49:37 GMT"

const plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\n" +
	"Content-Type: text/plain\r\n\r\nok"

var passages = []passage{
	{"a plain request", "GET /a HTTP/1.1\r\nHost: shop\r\nUser-Agent: curl\r\nAccept: */*\r\n\r\n", ""},
	{"a query that is not a form: `?q=100%&page=2`", "GET /s?q=100%&page=2 HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{
		"a query with semicolons and odd characters", "GET /s?a=1;b=2&c=\"<{|}>&?d=%zz HTTP/1.1\r\nHost: shop\r\n\r\n",
		"",
	},
	{"an empty query", "GET /s? HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{"encoded slashes and dots in a path", "GET /a%2Fb/%2e%2e/c%20d HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{"`//`, `.` and `..` in a path", "GET //a//b/./c/../d HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{"characters that should be encoded", "GET /{a}|b\"<é> HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{"no User-Agent, no Accept-Encoding", "GET /a HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{
		"headers more than once, empty, with odd values",
		"GET /a HTTP/1.1\r\nHost: shop\r\nX-A: 1\r\nX-B: \r\nX-A: 2\r\nX-A: 1\r\nx-c: a,b ;é\"\r\nCookie: a=1\r\n" +
			"Cookie: b=2\r\n\r\n", "",
	},
	{
		"`Accept-Encoding` and a response in gzip",
		"GET /a HTTP/1.1\r\nHost: shop\r\nAccept-Encoding: gzip, br\r\n\r\n",
		"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\nContent-Encoding: gzip\r\n" +
			"Content-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
	},
	{
		"a body with `Content-Length`",
		"POST /a HTTP/1.1\r\nHost: shop\r\nContent-Length: 5\r\nContent-Type: text/x\r\n\r\nhello", "",
	},
	{"`Content-Length: 0` with POST", "POST /a HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n", ""},
	{"`Content-Length: 0` with DELETE", "DELETE /a HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n", ""},
	{"`Content-Length: 0` with GET", "GET /a HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n", ""},
	{"a POST without a body", "POST /a HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{"a GET with a body", "GET /a HTTP/1.1\r\nHost: shop\r\nContent-Length: 5\r\n\r\nhello", ""},
	{
		"chunks without a length",
		"POST /a HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "",
	},
	{
		"trailers of a request",
		"POST /a HTTP/1.1\r\nHost: shop\r\nTE: trailers\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" +
			"hello\r\n0\r\nX-Sum: 1\r\n\r\n", "",
	},
	{
		"trailers of a response", "GET /a HTTP/1.1\r\nHost: shop\r\nTE: trailers\r\n\r\n",
		"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\nTransfer-Encoding: chunked\r\n" +
			"Trailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n",
	},
	{
		"`Expect: 100-continue`",
		"POST /a HTTP/1.1\r\nHost: shop\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", "",
	},
	{
		"early hints", "GET /a HTTP/1.1\r\nHost: shop\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" + plain,
	},
	{"HTTP/1.0", "GET /a HTTP/1.0\r\nHost: shop\r\n\r\n", ""},
	{
		"HEAD", "HEAD /a HTTP/1.1\r\nHost: shop\r\n\r\n",
		"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\nContent-Length: 1234\r\n\r\n",
	},
	{"a target with scheme and host", "GET http://shop/a?b HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{"`OPTIONS *`", "OPTIONS * HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{
		"headers that `Connection` names",
		"GET /a HTTP/1.1\r\nHost: shop\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n" +
			"\r\n", "",
	},
	{
		"an upgrade, and what follows",
		"GET /a HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframe",
	},
	{
		"an upgrade that the service refuses",
		"GET /a HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "",
	},
	{
		"a response in chunks", "GET /a HTTP/1.1\r\nHost: shop\r\n\r\n",
		"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\nTransfer-Encoding: chunked\r\n" +
			"\r\n2\r\nok\r\n0\r\n\r\n",
	},
	{
		"a response that ends with its connection", "GET /a HTTP/1.1\r\nHost: shop\r\n\r\n",
		"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\nConnection: close\r\n\r\n<html>ok",
	},
	{
		"a response without `Date`, `Server` and `Content-Type`", "GET /a HTTP/1.1\r\nHost: shop\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
	},
	{
		"cookies, links and headers more than once in a response", "GET /a HTTP/1.1\r\nHost: shop\r\n\r\n",
		"HTTP/1.1 302 Found\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\nLocation: //b/../c?d=%\r\n" +
			"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n",
	},
	{
		"a status without a body", "GET /a HTTP/1.1\r\nHost: shop\r\nIf-None-Match: \"x\"\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\nETag: \"x\"\r\n\r\n",
	},
	{
		"an unregistered status with a reason", "GET /a HTTP/1.1\r\nHost: shop\r\n\r\n",
		"HTTP/1.1 299 Fine\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\nContent-Length: 0\r\n\r\n",
	},
	{
		"a status without a body, with the length of the unchanged body",
		"GET /a HTTP/1.1\r\nHost: shop\r\nIf-None-Match: \"x\"\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\n" +
			"Content-Length: 1234\r\nContent-Type: text/plain\r\n\r\n",
	},
	{
		"bytes right after the request of an upgrade",
		"GET /a HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	},
	{"`CONNECT`", "CONNECT shop:443 HTTP/1.1\r\nHost: shop:443\r\n\r\n", ""},
	{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""},
	{"`*` with a method other than `OPTIONS`", "GET * HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{"HTTP/1.0 without `Host`", "GET /a HTTP/1.0\r\n\r\n", ""},
	{"different hosts in the target and in `Host`", "GET http://shop/a HTTP/1.1\r\nHost: other\r\n\r\n", ""},
	{"`Proxy-Authorization`", "GET /a HTTP/1.1\r\nHost: shop\r\nProxy-Authorization: Basic eDp5\r\n\r\n", ""},
	{
		"`Proxy-Authenticate`", "GET /a HTTP/1.1\r\nHost: shop\r\n\r\n",
		"HTTP/1.1 407 Proxy Authentication Required\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: origin\r\n" +
			"Proxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
	},
	{"names of headers with `_`", "GET /a HTTP/1.1\r\nHost: shop\r\nX_Other: 1\r\n\r\n", ""},
	{
		"`X_Forwarded_For` from an untrusted client",
		"GET /a HTTP/1.1\r\nHost: shop\r\nX_Forwarded_For: 192.0.2.7\r\n\r\n", "",
	},
	{
		"`X-Forwarded-For` in a trailer",
		"POST /a HTTP/1.1\r\nHost: shop\r\nTrailer: X-Forwarded-For\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" +
			"hello\r\n0\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n", "",
	},
	{"`X-Real-IP`", "GET /a HTTP/1.1\r\nHost: shop\r\nX-Real-IP: 192.0.2.7\r\n\r\n", ""},
	{"characters that should be encoded after `//`", "GET //{a}|b\"<é> HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{"`..` above the root", "GET /a/../../b HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{"a header without a colon", "GET /a HTTP/1.1\r\nHost: shop\r\nX-Bare\r\n\r\n", ""},
	{"a header in two lines", "GET /a HTTP/1.1\r\nHost: shop\r\nX-A: 1\r\n 2\r\n\r\n", ""},
	{
		"the same length twice",
		"POST /a HTTP/1.1\r\nHost: shop\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"",
	},
	{"a length and chunks", "POST /a HTTP/1.1\r\nHost: shop\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n" +
		"\r\n5\r\nhello\r\n0\r\n\r\n", ""},
	{
		"chunks in HTTP/1.0",
		"POST /a HTTP/1.0\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "",
	},
	{"`%00` in a path", "GET /a%00 HTTP/1.1\r\nHost: shop\r\n\r\n", ""},
	{"`Expect` with another value", "GET /a HTTP/1.1\r\nHost: shop\r\nExpect: x\r\n\r\n", ""},
	{"a control character in a header", "GET /a HTTP/1.1\r\nHost: shop\r\nX-Ctl: \x01\r\n\r\n", ""},
	{"an invalid name of a header", "GET /a HTTP/1.1\r\nHost: shop\r\nX(Y): 1\r\n\r\n", ""},
	{lateContinue, "POST /a HTTP/1.1\r\nHost: shop\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", ""},
	{earlyAnswer, "POST /a HTTP/1.1\r\nHost: shop\r\nContent-Length: 10\r\n\r\nhello", ""},
	{
		"a line of a chunk that ends with LF alone",
		"POST /a HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", "",
	},
	{
		"a chunk whose extension has 20,000 bytes",
		"POST /a HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n5;x=" + strings.Repeat("y", 20_000) +
			"\r\nhello\r\n0\r\n\r\n", "",
	},
	{
		"`Trailer` with a field that no trailer may have",
		"POST /a HTTP/1.1\r\nHost: shop\r\nTrailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" +
			"hello\r\n0\r\n\r\n", "",
	},
	{
		"`X-Forwarded-For` from an untrusted client",
		"GET /a HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n\r\n", "",
	},
}

// Passages whose upstream does more than to send a response (see recorder).
const (
	lateContinue = "`100 Continue` that the service sends after a second"
	earlyAnswer  = "a response before the end of the request's body"
)

const nginxConfig = `daemon off; master_process off; pid nginx.pid; error_log stderr; worker_rlimit_nofile 1000;
events { worker_connections 100; }
http {
  access_log off; server_tokens off;
  client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  map $http_upgrade $connection_upgrade { default Upgrade; '' ''; }
  server {
    listen %s;
    %s
  }
}
`

// unseen configures nginx to forward requests with as few changes as possible.
const unseen = `location / {
      proxy_pass http://%s;
      proxy_http_version 1.1;
      proxy_request_buffering off; proxy_buffering off;
      proxy_pass_header Server; proxy_pass_header Date;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Proto $scheme;
    }`

// TestProxyBesideNginx sends the same messages through windowstat proxy and through nginx, which is configured to
// change as little as possible. The results are equal; every difference is in the table of docs/proxy.md.
func TestProxyBesideNginx(t *testing.T) {
	t.Parallel()
	up := newRecorder(t)
	front, _, _ := startWindowstatProxy(t, up.addr)
	fronts := map[string]string{"proxy": front, "nginx": startNginx(t, fmt.Sprintf(unseen, up.addr))}
	var table strings.Builder
	table.WriteString("| request or answer | only windowstat proxy | only nginx |\n|---|---|---|\n")
	same := 0
	for _, p := range passages {
		if p.answer == "" {
			p.answer = plain
		}
		seen, refused := map[string][]string{}, map[string]bool{}
		for name, front := range fronts {
			_, body, _ := strings.Cut(p.request, "\r\n\r\n")
			up.answer, up.follows = p.answer, len(body)
			up.late, up.early = p.name == lateContinue, p.name == earlyAnswer
			got := roundTrip(t, front, p.request)
			request := up.request(t, strings.HasPrefix(got, switched))
			if refused[name] = request == noRequest; refused[name] { // each proxy has its own error text
				got, _, _ = strings.Cut(got, "\r\n")
			}
			seen[name] = append(facts(request, "service: "), facts(got, "client: ")...)
			for i, fact := range seen[name] {
				seen[name][i] = strings.ReplaceAll(fact, up.addr, "upstream")
			}
		}
		for name := range fronts {
			if refused["proxy"] != refused["nginx"] && !refused[name] {
				seen[name] = []string{"passes"}
			}
		}
		mine, others := without(seen["proxy"], seen["nginx"]), without(seen["nginx"], seen["proxy"])
		if len(mine)+len(others) == 0 {
			same++
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", p.name, cell(mine), cell(others))
	}
	t.Logf("%d of %d are the same", same, len(passages))
	const page, begin, end = "../docs/proxy.md", "<!-- passages -->\n", "<!-- /passages -->"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	documented, after, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatal("docs/proxy.md has no table")
	case documented == table.String():
	case *update:
		if err := os.WriteFile(page, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/proxy.md has\n%s\nwant (go test -run TestProxyBesideNginx -update)\n%s", documented,
			table.String())
	}
}

func cell(lines []string) string {
	for i, line := range lines {
		lines[i] = "`" + strings.ReplaceAll(line, "|", "\\|") + "`"
	}
	return strings.Join(lines, "<br>")
}

func without(list, other []string) []string {
	other = slices.Clone(other)
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		i := slices.Index(other, s)
		if i >= 0 {
			other = slices.Delete(other, i, i+1)
		}
		return i >= 0
	})
}

var chunked = regexp.MustCompile(`(?mi)^transfer-encoding: *chunked\r$`)

// facts returns the relevant parts of messages: first lines, headers sorted by name, because their order has no
// meaning, and bodies without the boundaries of chunks, which have no meaning either.
func facts(message, where string) (list []string) {
	for {
		head, body, ok := strings.Cut(message, "\r\n\r\n")
		lines := strings.Split(head, "\r\n")
		list = append(list, where+lines[0])
		names := map[string][]string{}
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ":")
			names[strings.ToLower(name)] = append(names[strings.ToLower(name)], strings.TrimSpace(value))
		}
		for name, values := range names {
			value := strings.Join(values, " + ")
			switch {
			case name == "connection" && strings.EqualFold(value, "keep-alive"): // keep-alive is the default
			case name == "connection":
				list = append(list, where+name+": "+strings.ToLower(value))
			case name == "date" && value != originDate:
				list = append(list, where+name+": now")
			default:
				list = append(list, where+name+": "+value)
			}
		}
		if strings.Contains(lines[0], " 103 ") || strings.Contains(lines[0], " 100 ") {
			message, where = body, where+"then: "
			continue
		}
		if ok && chunked.MatchString(head+"\r\n") {
			r := bufio.NewReader(strings.NewReader(body))
			b, _ := io.ReadAll(httputil.NewChunkedReader(r))
			trailers, _ := io.ReadAll(r)
			body = string(b)
			for _, line := range strings.Split(strings.TrimSpace(string(trailers)), "\r\n") {
				if line != "" {
					list = append(list, where+"trailer "+line)
				}
			}
		}
		if body != "" {
			list = append(list, fmt.Sprintf("%s%q", where, body))
		}
		slices.Sort(list)
		return list
	}
}

// recorder is an upstream that keeps the bytes of a request and sends the bytes of a response.
type recorder struct {
	addr     string
	answer   string
	follows  int  // number of bytes after a request that switches protocols
	late     bool // 100 Continue is sent after the proxies stopped waiting
	early    bool // the response is sent after the header of the request
	requests chan string
	open     sync.WaitGroup // connections that received a request
}

// switched is the beginning of a response that switches the protocol of the connection.
const switched = "HTTP/1.1 101 "

func newRecorder(t *testing.T) *recorder {
	r := &recorder{requests: make(chan string, 10)}
	r.addr = accept(t, r.serve)
	return r
}

func (r *recorder) serve(c net.Conn) {
	defer c.Close()
	b := bufio.NewReader(c)
	expected := func() {
		if r.late {
			time.Sleep(1200 * time.Millisecond)
		}
		io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	read := readMessage
	if r.early {
		read = readHead
	}
	request, err := read(b, expected)
	if err != nil {
		return
	}
	r.open.Add(1)
	defer r.open.Done()
	if strings.HasPrefix(r.answer, switched) { // later bytes belong to the request
		_, _ = io.WriteString(c, r.answer)
		_ = c.SetReadDeadline(time.Now().Add(catchUp))
		follows := make([]byte, r.follows)
		n, _ := io.ReadFull(b, follows)
		_ = c.(*net.TCPConn).CloseWrite() // the client has everything and disconnects
		more, _ := io.ReadAll(b)
		r.requests <- request + string(follows[:n]) + string(more)
		return
	}
	r.requests <- request
	_, _ = io.WriteString(c, r.answer)
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(catchUp))
	_, _ = io.Copy(io.Discard, b)
}

// noRequest is the value for a request that did not arrive.
const noRequest = "nothing"

// request returns the request that the upstream received for the latest response, or noRequest. The request is
// available before its response, except after a switch of protocols, which ends later. request waits until the proxy
// has closed the connection. Otherwise the proxy would send the next request on that connection, and a request that the
// proxy may not repeat would be lost.
func (r *recorder) request(t *testing.T, switched bool) string {
	t.Helper()
	if switched {
		select {
		case got := <-r.requests:
			return got
		case <-time.After(2 * catchUp):
			t.Fatal("a connection that has switched protocols does not end")
		}
	}
	r.open.Wait()
	select {
	case got := <-r.requests:
		return got
	default:
		return noRequest
	}
}

var length = regexp.MustCompile(`(?mi)^content-length: *(\d+)\r$`)

// readHead reads the header of a request.
func readHead(r *bufio.Reader, _ func()) (string, error) {
	var b strings.Builder
	for !strings.HasSuffix(b.String(), "\r\n\r\n") {
		s, err := r.ReadString('\n')
		if b.WriteString(s); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// readMessage reads a request to its end.
func readMessage(r *bufio.Reader, expected func()) (string, error) {
	var b strings.Builder
	line := func() string {
		s, _ := r.ReadString('\n')
		b.WriteString(s)
		return s
	}
	for {
		s := line()
		if s == "" {
			return "", errors.New("no request")
		}
		if s == "\r\n" {
			break
		}
	}
	if strings.Contains(strings.ToLower(b.String()), "expect: 100-continue") {
		expected()
	}
	if m := length.FindStringSubmatch(b.String()); m != nil {
		var n int64
		fmt.Sscan(m[1], &n)
		_, err := io.CopyN(&b, r, n)
		return b.String(), err
	}
	if !chunked.MatchString(b.String()) {
		return b.String(), nil
	}
	for n := int64(1); n > 0; {
		if _, err := fmt.Sscanf(line(), "%x", &n); err != nil {
			return b.String(), err
		}
		if n > 0 {
			if _, err := io.CopyN(&b, r, n+int64(len("\r\n"))); err != nil {
				return b.String(), err
			}
		}
	}
	for {
		switch line() {
		case "\r\n":
			return b.String(), nil
		case "":
			return b.String(), io.ErrUnexpectedEOF
		}
	}
}

// roundTrip sends a request and returns all bytes until the other side is done. After the response it closes its
// sending side, and the other side closes the connection. Bytes that the other side had left to send arrive before.
func roundTrip(t *testing.T, addr, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(catchUp))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	r := bufio.NewReader(io.TeeReader(c, &got))
	method, _, _ := strings.Cut(request, " ")
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil || resp.StatusCode == http.StatusSwitchingProtocols {
			break
		}
		if resp.StatusCode >= 200 {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = c.(*net.TCPConn).CloseWrite()
			break
		}
	}
	if _, err := io.Copy(io.Discard, r); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q: the other side does not close after %q", request, &got)
	}
	return got.String()
}

// startWindowstatProxy starts a process. The addresses are for clients and for its pages.
func startWindowstatProxy(t *testing.T, upstream string, flags ...string) (front, page string, process int) {
	t.Helper()
	front, page = freeAddress(t), freeAddress(t)
	flags = append([]string{
		"proxy", "--upstream=http://" + upstream, "--proxy.listen-address=" + front,
		"--web.listen-address=" + page,
	}, flags...)
	return front, page, launch(t, front, "", buildWindowstat(t), flags...).Process.Pid
}

// startNginx starts an nginx with the configuration of a server.
func startNginx(t *testing.T, server string) (addr string) {
	t.Helper()
	executable, dir := nginx.path(t), t.TempDir()
	addr = freeAddress(t)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"),
		fmt.Appendf(nil, nginxConfig, addr, server), 0o644); err != nil {
		t.Fatal(err)
	}
	launch(t, addr, dir, executable, "-p", dir, "-c", "nginx.conf", "-e", "stderr")
	return addr
}

// launch starts a process that listens at an address, and ends it after the test.
func launch(t *testing.T, addr, dir, executable string, args ...string) *exec.Cmd {
	t.Helper()
	c := command(t, executable, args...)
	c.Dir = dir
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the children of Apache would continue
	t.Cleanup(func() {
		if c.Process != nil {
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
			_ = c.Wait()
		}
		if t.Failed() {
			t.Logf("%s: %s", executable, out.String())
		}
	})
	startReady(t, c, listens(addr))
	return c
}
