package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// exchanges is the number of random exchanges. WINDOWSTAT_E2E_PROXIED sets a duration instead.
const exchanges = 1000

// TestProxyFuzzedBesideNginx passes random requests and responses through windowstat proxy and through nginx. The
// service and the client see the same messages with both, except for the differences in the list and the table of
// docs/proxy.md, which documentedNames contains.
func TestProxyFuzzedBesideNginx(t *testing.T) {
	t.Parallel()
	var end time.Time
	if more := os.Getenv("WINDOWSTAT_E2E_PROXIED"); more != "" {
		d, err := time.ParseDuration(more)
		if err != nil {
			t.Fatal(err)
		}
		end = time.Now().Add(d)
	}
	up := newFuzzedUpstream(t)
	front, _, _ := startWindowstatProxy(t, up.addr)
	beside := startNginx(t, fmt.Sprintf(unseen, up.addr))
	seed := rand.Uint64()
	var workers sync.WaitGroup
	var mu sync.Mutex
	passed, refused, differ := 0, 0, 0
	const parallel = 8
	for worker := range parallel {
		workers.Go(func() {
			for i := worker; i < exchanges || time.Now().Before(end); i += parallel {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				x := randomExchange(r)
				mine, others := up.pass(front, fmt.Sprintf("p%d", i), x), up.pass(beside, fmt.Sprintf("n%d", i), x)
				mu.Lock()
				if mine.refused() {
					refused++
				} else {
					passed++
				}
				if why := compare(x, mine, others); why != "" {
					if differ++; differ <= 10 {
						t.Errorf("seed %d, exchange %d: %s\nrequest %q\nanswer %q", seed, i, why, x.request, x.answer)
					}
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	for _, stray := range up.stray() {
		t.Errorf("nobody has sent %q", stray)
	}
	t.Logf("seed %d: %d exchanges passed, %d were refused, %d differ", seed, passed, refused, differ)
	if passed < exchanges/2 {
		t.Error("too few pass")
	}
}

// An exchange is a request and its response. In the request, @ marks the position of the number of the exchange.
type exchange struct{ method, request, answer string }

func randomExchange(r *rand.Rand) (x exchange) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	rarely := func() bool { return r.IntN(12) == 0 }
	some := func(b *strings.Builder, most int, of ...string) {
		for range r.IntN(most + 1) {
			b.WriteString(pick(of...))
		}
	}
	var b strings.Builder
	x.method = pick("GET", "GET", "GET", "POST", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "PURGE")
	version := "HTTP/1.1"
	if rarely() {
		version = "HTTP/1.0"
	}
	b.WriteString(x.method + " ")
	if rarely() {
		b.WriteString("http://shop")
	}
	b.WriteString("/")
	some(&b, 8, "a", "B", "/", "/", ".", "..", "%2f", "%2E", "%20", ";x=1", "//", "{", "é", "\\", "|", "\"",
		"+", "*", ":", "%c3%a9", "~")
	if r.IntN(3) == 0 {
		b.WriteString("?")
		some(&b, 6, "a", "=", "&", ";", "%", "%zz", "?", "/", "\"", "é", "+", "%20", "{", "..")
	}
	if rarely() {
		b.WriteString("#x")
	}
	fmt.Fprintf(&b, " %s\r\nHost: shop\r\nX-Exchange: @\r\n", version)
	b.WriteString(randomHeaders(r,
		"X-A: 1\r\n", "X-A: 2\r\n", "x-b:\r\n", "X-C:   a,b ;\"\t é  \r\n", "Cookie: a=1\r\n", "Cookie: b=2\r\n",
		"Accept: */*\r\n", "User-Agent: u\r\n", "TE: trailers\r\n",
		"TE: gzip\r\n", "Connection: close\r\n", "Connection: keep-alive\r\n", "Connection: X-Hop\r\nX-Hop: 1\r\n",
		"Keep-Alive: 5\r\n", "Proxy-Connection: x\r\n",
		"X-Forwarded-For: 192.0.2.7\r\n", "X_Forwarded_For: 192.0.2.7\r\n", "X-Forwarded-Proto: https\r\n",
		"X-Forwarded-Port: 1\r\n", "Forwarded: for=192.0.2.7\r\n",
		"X-Real-IP: 192.0.2.7\r\n", "Upgrade: x\r\n", "Connection: Upgrade\r\nUpgrade: x\r\n",
		"Proxy-Authorization: x\r\n", "Authorization: x\r\n", "Range: bytes=0-1\r\n",
		"If-None-Match: \"x\"\r\n", "Content-Type: text/x\r\n", "Content-Encoding: gzip\r\n",
		"Accept-Encoding: gzip\r\n", "X-Long: "+strings.Repeat("x", 10*r.IntN(10))+"\r\n",
		"X.Odd!: 1\r\n", "Origin: null\r\n", "Via: 1.1 x\r\n", "Date: x\r\n", "Trailer: X-Sum\r\n"))
	if rarely() {
		b.WriteString(pick("X-Bad : 1\r\n", "X-Bare\r\n", " X-Fold: 1\r\n", "X-Nul: \x00\r\n", "X-Cr: a\rb\r\n",
			": 1\r\n", "Host: other\r\n", "X(Y): 1\r\n", "X-Ctl: \x01\r\n", "Expect: x\r\n"))
	}
	body := strings.Repeat(pick("x", "hello\r\n", "\x00", "GET / HTTP/1.1\r\n\r\n"), r.IntN(5))
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	switch r.IntN(10) {
	case 0, 1, 2:
		b.WriteString(length + "\r\n" + body)
	case 3, 4:
		b.WriteString("Transfer-Encoding: chunked\r\n")
		trailers := pick("", "", "X-Sum: 1\r\n", "X-Forwarded-For: 192.0.2.7\r\n",
			"Content-Length: 3\r\n", "Host: other\r\n")
		b.WriteString("\r\n" + inChunks(r, body) + "0\r\n" + trailers + "\r\n")
	case 5:
		b.WriteString(pick(
			length+length+"\r\n"+body, length+"Content-Length: 1\r\n\r\n"+body,
			length+"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Content-Length: +1\r\n\r\nx",
			"Content-Length: 0x1\r\n\r\nx", "Content-Length: 1, 1\r\n\r\nx", "Content-Length: -1\r\n\r\n",
			"Content-Length:\r\n\r\n", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
			"Transfer-Encoding: x\r\n\r\n",
			"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"Transfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\n1;x=\"y\"\r\nx\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nz\r\n",
			"Transfer-Encoding: chunked\r\n\r\n-1\r\n", "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx\r\n0\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\n01\r\nx\r\n00\r\n\r\n",
		))
	default:
		b.WriteString("\r\n")
	}
	x.request, x.answer = b.String(), randomAnswer(r, x.method)
	return x
}

// randomHeaders returns some of the headers, each once: nginx refuses some headers that appear twice.
func randomHeaders(r *rand.Rand, of ...string) string {
	r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	return strings.Join(of[:r.IntN(7)], "")
}

// inChunks returns a body in chunks of random sizes.
func inChunks(r *rand.Rand, body string) string {
	var b strings.Builder
	for body != "" {
		n := 1 + r.IntN(len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String()
}

func randomAnswer(r *rand.Rand, method string) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var b strings.Builder
	status := pick("200 OK", "200 OK", "201 Created", "204 No Content", "206 Partial Content", "301 Moved Permanently",
		"304 Not Modified", "401 Unauthorized", "404 Not Found", "500 Internal Server Error", "503 Service Unavailable")
	b.WriteString("HTTP/1.1 " + status + "\r\nDate: " + originDate + "\r\nServer: origin\r\n" +
		pick("", "Content-Type: text/x\r\n"))
	b.WriteString(randomHeaders(r, "X-A: 1\r\n", "X-A: 2\r\n", "X-B:\r\n", "Set-Cookie: a=1\r\n", "Set-Cookie: b=2\r\n",
		"Location: //b/../c?d=%\r\n", "Content-Encoding: gzip\r\n", "ETag: \"x\"\r\n",
		"Cache-Control: no-store\r\n", "Vary: *\r\n", "Keep-Alive: 5\r\n", "X_Under: 1\r\n", "X-Odd: é \"\r\n",
		"WWW-Authenticate: Basic\r\n", "Retry-After: 1\r\n", "Trailer: X-Sum\r\n"))
	body := strings.Repeat(pick("x", "\r\n", "\x00", "HTTP/1.1 200 OK\r\n\r\n"), r.IntN(5))
	bodiless := method == "HEAD" || strings.HasPrefix(status, "204") || strings.HasPrefix(status, "304")
	switch r.IntN(3) {
	case 0:
		if strings.HasPrefix(status, "204") {
			break
		}
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(body))
		if !bodiless {
			b.WriteString(body)
		}
		return b.String()
	case 1:
		if bodiless {
			break
		}
		return b.String() + "Transfer-Encoding: chunked\r\n\r\n" + inChunks(r, body) + "0\r\n" +
			pick("", "X-Sum: 1\r\n") + "\r\n"
	}
	b.WriteString("Connection: close\r\n\r\n")
	if !bodiless {
		b.WriteString(body)
	}
	return b.String()
}

// A sight holds the messages of an exchange as the service and the client received them.
type sight struct{ service, client []string }

func (v sight) refused() bool { return len(v.service) == 0 }

// documentedNames matches the headers that the two proxies treat differently, according to docs/proxy.md: headers that
// delimit a body (the test compares the body itself), headers of one connection, and headers that identify the client.
// nginx is configured to send only three of the latter. nginx drops unusual names.
var documentedNames = regexp.MustCompile(`^(content-length|transfer-encoding|te|trailer|trailer ` +
	`.*|expect|connection|keep-alive|proxy-connection|upgrade|x-hop|proxy-authorization|x-forwarded-port|forwarded|` +
	`x-exchange|.*[^a-z0-9-].*)$`)

// encodedPath matches a first line whose path the proxy must encode. decoded reverses the encoding.
var (
	encodedPath = regexp.MustCompile(`^service: \S+ //`)
	decoded     = strings.NewReplacer("%22", "\"", "%23", "#", "%5C", "\\", "%7B", "{", "%7C", "|", "%C3%A9", "é")
)

// refusedByOne matches requests that only one of the two proxies refuses, according to the table of docs/proxy.md.
var refusedByOne = []*regexp.Regexp{
	regexp.MustCompile(`^\S+ [^ ?]*(\.|%2E)(\.|%2E)`), // above the root
	regexp.MustCompile(`\r\n(Expect: x|X-Ctl: .*|X\(Y\): 1|X-Bare| X-Fold: 1)\r\n`),
	regexp.MustCompile(`(?s)\r\nContent-Length: .*\r\nTransfer-Encoding: chunked\r\n\r\n`),
	regexp.MustCompile(`(?s)\r\nContent-Length: \d+\r\nContent-Length: \d+\r\n`),
	regexp.MustCompile(`(?s)^\S+ \S+ HTTP/1\.0\r\n.*\r\nTransfer-Encoding:`),
}

// undocumented removes the lines that may differ.
func undocumented(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		_, line, _ = strings.Cut(line, ": ") // service or client
		line = strings.TrimPrefix(line, "then: ")
		name, _, ok := strings.Cut(line, ":")
		return ok && !strings.HasPrefix(line, `"`) && !strings.Contains(name, " /") && documentedNames.MatchString(name)
	})
}

// compare returns the difference between two sights of an exchange, or an empty string if they are equal.
func compare(x exchange, mine, others sight) string {
	for _, line := range mine.service {
		if strings.Contains(line, "192.0.2.7") && !strings.HasPrefix(line, "service: x-real-ip") {
			return "who asks is a stranger's word: " + line
		}
	}
	if mine.refused() != others.refused() {
		for _, refuses := range refusedByOne {
			if refuses.MatchString(x.request) {
				return ""
			}
		}
		return fmt.Sprintf("one refuses it: proxy %.60q, nginx %.60q", mine.client, others.client)
	}
	if mine.refused() {
		return ""
	}
	var why []string
	for _, of := range []struct{ mine, others []string }{{mine.service, others.service}, {mine.client, others.client}} {
		for i := range of.mine {
			of.mine[i] = strings.Replace(of.mine[i], ": HTTP/1.0 ", ": HTTP/1.1 ", 1)
			if encodedPath.MatchString(of.mine[i]) {
				of.mine[i] = decoded.Replace(of.mine[i])
			}
		}
		a, b := undocumented(of.mine), undocumented(of.others)
		if only, other := without(a, b), without(b, a); len(only)+len(other) > 0 {
			why = append(why, fmt.Sprintf("only proxy %.300q, only nginx %.300q", only, other))
		}
	}
	return strings.Join(why, "; ")
}

// fuzzedUpstream sends the response of each request's exchange, and keeps the request.
type fuzzedUpstream struct {
	addr string

	mu      sync.Mutex
	answers map[string]string
	seen    map[string][]string // by exchange; the empty key is for requests without one
}

func newFuzzedUpstream(t *testing.T) *fuzzedUpstream {
	u := &fuzzedUpstream{answers: map[string]string{}, seen: map[string][]string{}}
	u.addr = accept(t, u.serve)
	return u
}

var exchangeOf = regexp.MustCompile(`(?i)\r\nX-Exchange: ([pn]\d+)\b`)

func (u *fuzzedUpstream) serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		if _, err := r.Peek(1); err != nil {
			return // it does not continue
		}
		request, err := readMessage(r, func() {})
		if err != nil {
			return // the request has no end
		}
		id := ""
		if m := exchangeOf.FindStringSubmatch(request); m != nil {
			id = m[1]
		}
		u.mu.Lock()
		answer := u.answers[id]
		u.seen[id] = append(u.seen[id], request)
		u.mu.Unlock()
		if _, err := io.WriteString(c, answer); err != nil || answer == "" ||
			strings.Contains(answer, "\r\nConnection: close\r\n") {
			return
		}
	}
}

// pass sends a request to a proxy, and returns its sight.
func (u *fuzzedUpstream) pass(front, id string, x exchange) (v sight) {
	u.mu.Lock()
	u.answers[id] = x.answer
	u.mu.Unlock()
	got := u.exchange(front, strings.Replace(x.request, "@", id, 1), x.method)
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := u.seen[id]
	delete(u.seen, id)
	delete(u.answers, id)
	for _, request := range seen {
		v.service = append(v.service, facts(request, "service: ")...)
	}
	v.client = facts(got, "client: ")
	return v
}

// exchange sends a request, and returns the bytes of the response.
func (u *fuzzedUpstream) exchange(front, request, method string) string {
	c, err := net.Dial("tcp", front)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(catchUp))
	if _, err := io.WriteString(c, request); err != nil {
		return err.Error()
	}
	var got bytes.Buffer
	r := bufio.NewReader(io.TeeReader(c, &got))
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return got.String() + " and then " + err.Error()
		}
		if resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return got.String() + " and then " + err.Error()
		}
		return got.String()
	}
}

// stray returns the requests that arrived without an exchange, or after its response.
func (u *fuzzedUpstream) stray() (requests []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, seen := range u.seen {
		requests = append(requests, seen...)
	}
	return requests
}
