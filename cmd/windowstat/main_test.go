package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// tests is the number of tests that run concurrently. They mostly wait, so the number may exceed the number of
// processors. In a short run, as with the race detector, tests have more work.
const tests, shortTests = "16", "8"

// maxWait bounds the wait of a test for an event. An event takes much less time on an idle machine.
const maxWait = 2 * time.Minute

// asCommand is the variable that makes the test binary run the command. The value "quiet" suppresses the line that
// shows the start.
const asCommand = "WINDOWSTAT_TEST_COMMAND"

func TestMain(m *testing.M) {
	if mode := os.Getenv(asCommand); mode != "" {
		if mode != "quiet" {
			fmt.Println("started")
		}
		main()
	}
	flag.Parse()
	n := tests
	if testing.Short() {
		n = shortTests
	}
	if err := flag.Set("test.parallel", n); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// process is a run of the command within the test.
type process struct {
	cancel context.CancelFunc
	status chan int
	mu     sync.Mutex
	out    bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func launch(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{cancel: cancel, status: make(chan int, 1)}
	go func() { p.status <- run(ctx, append([]string{"windowstat"}, args...), p, p) }()
	return p
}

// find waits until the output matches, and returns the first group.
func (p *process) find(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(maxWait); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if m := re.FindStringSubmatch(p.output()); m != nil {
			return m[1]
		}
	}
	t.Fatalf("no %s in the output:\n%s", pattern, p.output())
	return ""
}

// end cancels the program, and returns its exit status.
func (p *process) end(t *testing.T) int {
	t.Helper()
	p.cancel()
	return p.wait(t)
}

func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case status := <-p.status:
		return status
	case <-time.After(maxWait):
		t.Fatalf("it does not end:\n%s", p.output())
		return -1
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// settled returns the metrics page of a proxy without calls in flight. A client has its response shortly before the
// proxy counts it.
func settled(t *testing.T, page string) (metrics string) {
	t.Helper()
	for deadline := time.Now().Add(maxWait); ; time.Sleep(10 * time.Millisecond) {
		if _, metrics = get(t, page); strings.Contains(metrics, "windowstat_inbound_in_flight 0\n") {
			return metrics
		}
		if time.Now().After(deadline) {
			t.Fatal("there are calls in flight")
		}
	}
}

const anyPort = "--web.listen-address=127.0.0.1:0"

func TestDemo(t *testing.T) {
	t.Parallel()
	p := launch(t, "demo", anyPort, "--duration=3s", "--rate=300")
	page := p.find(t, `metrics +(http\S+)`)
	dir := p.find(t, `metric log +(\S+)`)
	if status, body := get(t, strings.TrimSuffix(page, "/metrics")); status != http.StatusOK ||
		!strings.Contains(body, `href="metrics"`) && !strings.Contains(body, `href="/metrics"`) {
		t.Errorf("landing page: %d\n%s", status, body)
	}
	if status, _ := get(t, page+"/nothing"); status != http.StatusNotFound {
		t.Errorf("a path that is not there: %d", status)
	}
	if status := p.wait(t); status != 0 {
		t.Errorf("status %d", status)
	}
	out := p.output()
	if strings.Count(out, "  equal\n") != 8 || strings.Contains(out, "DIFFERENT") {
		t.Errorf("output:\n%s", out)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the temporary directory is still there: %v", err)
	}
}

// The demo reports one request that its generator did not send.
func TestDemoNoticesADifference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := launch(t, "demo", anyPort, "--rate=100", "--metric-log.dir", dir)
	service := p.find(t, `service +(http\S+)`)
	get(t, service+"/search")
	if status := p.end(t); status != 1 {
		t.Errorf("status %d", status)
	}
	out := p.output()
	if strings.Count(out, "DIFFERENT") != 1 || !strings.Contains(out, "the counts differ") {
		t.Errorf("output:\n%s", out)
	}
}

// A second run with the same directory does not count rows of the first run.
func TestDemoTwiceInOneDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		p := launch(t, "demo", anyPort, "--duration=1s", "--rate=100", "--metric-log.dir", dir)
		if status := p.wait(t); status != 0 {
			t.Errorf("status %d:\n%s", status, p.output())
		}
	}
}

// A password on the page does not prevent the demo from verifying itself.
func TestDemoWithAPassword(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "web.yml")
	// Any bcrypt hash suffices, because no client logs in.
	yml := "basic_auth_users:\n  admin: $2y$10$FZLlPt9ZDgHXSOXkGqUGT.HBaqUQXbX2W8gSTXjBwDxhBIkTbkfUS\n"
	if err := os.WriteFile(config, []byte(yml), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "demo", anyPort, "--web.config.file", config, "--duration=1s", "--rate=100")
	page := strings.Replace(p.find(t, `metrics +(http\S+)`), "http(s)", "http", 1)
	if status, _ := get(t, page); status != http.StatusUnauthorized {
		t.Errorf("without the password: %d", status)
	}
	if status := p.wait(t); status != 0 {
		t.Errorf("status %d:\n%s", status, p.output())
	}
}

// The pages use HTTP/1.1 with TLS, too, unless the file enables HTTP/2. Only a connection of HTTP/1.1 is a receipt.
func TestHTTP2OfThePages(t *testing.T) {
	t.Parallel()
	some := httptest.NewTLSServer(nil)
	defer some.Close()
	key, err := x509.MarshalPKCS8PrivateKey(some.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: some.TLS.Certificates[0].Certificate[0]},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]int{
		"": 1, "http_server_config: {http2: false}\n": 1,
		"http_server_config: {headers: {X-Frame-Options: deny}}\n": 1, "http_server_config: {http2: true}\n": 2,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			config := filepath.Join(t.TempDir(), "web.yml")
			text += fmt.Sprintf("tls_server_config: {cert_file: %s/cert.pem, key_file: %s/key.pem}\n", dir, dir)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			p := launch(t, "demo", anyPort, "--web.config.file", config, "--duration=2s", "--rate=100")
			page := p.find(t, `metrics +(https\S+)`)
			client := &http.Client{
				Transport: &http.Transport{
					ForceAttemptHTTP2: true,
					TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
				},
			}
			resp, err := client.Get(page)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.ProtoMajor != want ||
				resp.StatusCode != http.StatusOK {
				t.Errorf("%q: %s, %s, %v; want HTTP/%d", text, resp.Status, resp.Proto, err, want)
			}
			_ = resp.Body.Close()
			client.CloseIdleConnections()
			if status := p.wait(t); status != 0 {
				t.Errorf("status %d:\n%s", status, p.output())
			}
		})
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	slow := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/slow"):
			<-slow
		case r.URL.Path == "/fail":
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/cut":
			fmt.Fprint(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprintf(w, "%s %s %s", r.Host, r.URL, r.Header.Get("X-Forwarded-For"))
		}
	}))
	defer upstream.Close()
	defer close(slow)
	dir := t.TempDir()
	p := launch(t, "proxy", anyPort, "--upstream", upstream.URL+"/base", "--proxy.listen-address=127.0.0.1:0",
		"--metric-log.dir", dir, "--max-resources=6")
	front := p.find(t, `proxy +(http\S+)`)
	page := p.find(t, `metrics +(http\S+)`)

	host := strings.TrimPrefix(front, "http://")
	if status, body := get(t, front+"/users/17?q=1"); status != 200 || body != host+" /base/users/17?q=1 127.0.0.1" {
		t.Errorf("%d %q", status, body)
	}
	get(t, front+"/users/18")
	// The timeout is enough for the other responses on a slow machine.
	p2 := launch(t, "proxy", anyPort, "--upstream", upstream.URL, "--proxy.listen-address=127.0.0.1:0",
		"--proxy.upstream-timeout=4s", "--route=GET /slow", "--route=GET /fail", "--route=GET /cut", "--route=GET /ok")
	front2 := p2.find(t, `proxy +(http\S+)`)
	for path, want := range map[string]int{"/slow": 504, "/fail": 503, "/ok": 200} {
		if status, _ := get(t, front2+path); status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
	}
	if resp, err := http.Get(front2 + "/cut"); err == nil {
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Error("a body that was cut off upstream ends well")
		}
		resp.Body.Close()
	}
	metrics := settled(t, p2.find(t, `metrics +(http\S+)`))
	for resource, want := range map[string]struct {
		exceptions int
		code       string
	}{"GET /slow": {1, "504"}, "GET /fail": {1, "503"}, "GET /cut": {1, "200"}, "GET /ok": {0, "200"}} {
		for name, n := range map[string]int{
			"pass_total{": 1, "complete_total{code=\"" + want.code + "\",": 1,
			"exception_total{": want.exceptions,
		} {
			line := fmt.Sprintf("windowstat_%sresource=%q} %d\n", name, resource, n)
			if !strings.Contains(metrics, line) {
				t.Errorf("no %q on the page", line)
			}
		}
	}
	if status := p2.end(t); status != 0 {
		t.Errorf("status %d:\n%s", status, p2.output())
	}

	// A client's paths use at most as many names as the limit allows, even if the upstream has each path.
	for i := range 40 {
		for range 2 {
			get(t, front+"/"+[]string{"x", "x/y", "x/y/z", "x/y/z/z"}[i%4]+strings.Repeat("y", i))
		}
	}
	metrics = settled(t, page)
	if n := strings.Count(metrics, "windowstat_pass_total{"); n != 7 {
		t.Errorf("%d resources", n)
	}
	for _, line := range []string{
		`windowstat_pass_total{resource="GET /users/:id"} 1`,
		`windowstat_inbound_pass_total 82`, `windowstat_earned_names 6`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %q on the page", line)
		}
	}
	if status := p.end(t); status != 0 {
		t.Errorf("status %d:\n%s", status, p.output())
	}
	rows, err := filepath.Glob(filepath.Join(dir, "proxy-metrics.log.*"))
	if err != nil || len(rows) < 2 {
		t.Errorf("log files %v, %v", rows, err)
	}
}

// Limits come from a file, apply to origins from a header, and are replaced while the proxy runs. A 429 for a client is
// a block.
func TestProxyLimits(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }),
	)
	defer upstream.Close()
	file, dir := filepath.Join(t.TempDir(), "limits.yml"), t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("limits: [{resource: GET /a, origin: bot, qps: 1, strict: true}]")
	p := launch(t, "proxy", anyPort, "--upstream", upstream.URL, "--proxy.listen-address=127.0.0.1:0",
		"--limits.file", file, "--proxy.origin-header=X-Client", "--metrics.by=origin", "--metrics.opentelemetry",
		"--metric-log.dir", dir)
	front := p.find(t, `proxy +(http\S+)`)
	page := p.find(t, `metrics +(http\S+)`)
	send := func(client string) int {
		t.Helper()
		req, err := http.NewRequest("GET", front+"/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Client", client)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	got := map[string]int{}
	for range 50 {
		for _, client := range []string{"bot", "human"} {
			got[fmt.Sprint(client, send(client))]++
		}
	}
	if got["human200"] != 50 || got["bot429"] == 0 || got["bot200"]+got["bot429"] != 50 {
		t.Errorf("answers %v", got)
	}
	metrics := settled(t, page)
	for _, line := range []string{
		fmt.Sprintf(`windowstat_pass_total{origin="bot",resource="GET /a"} %d`, got["bot200"]),
		fmt.Sprintf(`windowstat_block_by_origin_total{origin="bot",resource="GET /a"} %d`, got["bot429"]),
		`windowstat_pass_total{origin="human",resource="GET /a"} 50`,
		`windowstat_limits 1`,
		fmt.Sprintf(`windowstat_rt_seconds_count{resource="GET /a"} %d`, 50+got["bot200"]),
		fmt.Sprintf(`http_server_request_duration_seconds_count{error_type="",http_request_method="GET",`+
			`http_response_status_code="200",http_route="/a"} %d`, 50+got["bot200"]),
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %q on the page", line)
		}
	}
	write("limits: [{resource: GET /a, qps: 0}]")
	deadline := time.Now().Add(maxWait)
	for ; send("human") != http.StatusTooManyRequests; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the limits are not read again:\n%s", p.output())
		}
	}
	if status := p.end(t); status != 0 {
		t.Errorf("status %d:\n%s", status, p.output())
	}
}

// Without an upstream, clients receive a 502, and the call is an exception.
func TestProxyUpstreamDown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p := launch(t, "proxy", anyPort, "--upstream", "http://"+l.Addr().String(),
		"--proxy.listen-address=127.0.0.1:0", "--route=GET /a")
	front := p.find(t, `proxy +(http\S+)`)
	if status, _ := get(t, front+"/a"); status != http.StatusBadGateway {
		t.Errorf("status %d", status)
	}
	metrics := settled(t, p.find(t, `metrics +(http\S+)`))
	if !strings.Contains(metrics, `windowstat_exception_total{resource="GET /a"} 1`+"\n") {
		t.Error("not counted as an exception")
	}
	get(t, front+"/b")
	if n := strings.Count(p.output(), "the upstream does not respond"); n != 1 {
		t.Errorf("%d messages about it:\n%s", n, p.output())
	}
	if status := p.end(t); status != 0 {
		t.Errorf("status %d", status)
	}
}

// A client that breaks a request, or does not wait, causes no exception. Clients receive the unchanged response of the
// upstream.
func TestProxyClientsAtFault(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		case "/encoding":
			fmt.Fprint(w, r.Header.Get("Accept-Encoding"))
		default:
			_, _ = io.Copy(io.Discard, r.Body)
		}
	}))
	defer upstream.Close()
	p := launch(t, "proxy", anyPort, "--upstream", upstream.URL, "--proxy.listen-address=127.0.0.1:0",
		"--route=GET /long", "--route=POST /upload", "--route=POST /chunks", "--route=GET /encoding")
	front := p.find(t, `proxy +(http\S+)`)
	page := p.find(t, `metrics +(http\S+)`)
	raw := func(request string, read int) string {
		conn, err := net.Dial("tcp", strings.TrimPrefix(front, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, read)
		n, _ := io.ReadFull(conn, b)
		return string(b[:n])
	}
	raw("GET /long HTTP/1.1\r\nHost: x\r\n\r\n", 100_000) // then close the connection
	raw("POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf", 0)
	const chunks = "POST /chunks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"
	if got := raw(chunks, 12); got != "HTTP/1.1 400" {
		t.Errorf("a body that cannot be read: %q", got)
	}
	const encoding = "GET /encoding HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	if got := raw(encoding, 1000); !strings.HasSuffix(got, "\r\n\r\n") {
		t.Errorf("the upstream was asked for an encoding that the client did not ask for: %q", got)
	}
	for _, resource := range []string{"GET /long", "POST /upload", "POST /chunks", "GET /encoding"} {
		for deadline := time.Now().Add(maxWait); ; time.Sleep(10 * time.Millisecond) {
			_, metrics := get(t, page)
			if strings.Contains(metrics, fmt.Sprintf("windowstat_rt_seconds_count{resource=%q} 1\n", resource)) {
				if !strings.Contains(metrics, fmt.Sprintf("windowstat_exception_total{resource=%q} 0\n", resource)) {
					t.Errorf("%s is counted as an exception", resource)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s does not complete", resource)
			}
		}
	}
	if status := p.end(t); status != 0 {
		t.Errorf("status %d:\n%s", status, p.output())
	}
}

// At a rate that no machine reaches, the demo can be stopped, and its counts are equal.
func TestDemoAtTooHighARate(t *testing.T) {
	t.Parallel()
	p := launch(t, "demo", anyPort, "--rate=100000")
	p.find(t, `(running)`)
	time.Sleep(500 * time.Millisecond)
	if status := p.end(t); status != 0 {
		t.Errorf("status %d:\n%s", status, p.output())
	}
}

// A client that does not wait for its response is not an exception.
func TestProxyClientGone(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	defer upstream.Close()
	defer close(leave)
	p := launch(t, "proxy", anyPort, "--upstream", upstream.URL, "--proxy.listen-address=127.0.0.1:0", "--route=GET /a")
	front := p.find(t, `proxy +(http\S+)`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	req, _ := http.NewRequestWithContext(ctx, "GET", front+"/a", nil)
	if _, err := http.DefaultClient.Do(req); err == nil {
		t.Error("it got an answer")
	}
	page := p.find(t, `metrics +(http\S+)`)
	for deadline := time.Now().Add(maxWait); ; time.Sleep(10 * time.Millisecond) {
		_, metrics := get(t, page)
		if strings.Contains(metrics, `windowstat_complete_total{code="499",resource="GET /a"} 1`+"\n") {
			if !strings.Contains(metrics, `windowstat_exception_total{resource="GET /a"} 0`+"\n") {
				t.Error("counted as an exception")
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the call does not complete")
		}
	}
	p.end(t)
}

// All given addresses serve the pages, as with other exporters. If one address is in use, none serves.
func TestSeveralAddresses(t *testing.T) {
	t.Parallel()
	p := launch(t, "demo", anyPort, anyPort, "--rate=10")
	first := p.find(t, `metrics +(http\S+)`)
	second := "http://" + p.find(t, `served here, too".* address=(\S+)`) + "/metrics"
	if first == second {
		t.Fatalf("both are %s", first)
	}
	for _, url := range []string{first, second} {
		if status, page := get(t, url); status != http.StatusOK ||
			!strings.Contains(page, "windowstat_overflow_events_total") {
			t.Errorf("%s: %d", url, status)
		}
	}
	if status := p.end(t); status != 0 {
		t.Errorf("status %d:\n%s", status, p.output())
	}
	for _, url := range []string{first, second} {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			t.Errorf("%s is served after the end", url)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p = launch(t, "demo", anyPort, "--web.listen-address="+taken.Addr().String(), "--duration=1s")
	if status := p.wait(t); status != 1 || !strings.Contains(p.output(), "in use") {
		t.Errorf("status %d:\n%s", status, p.output())
	}
}

func TestBadArguments(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("nonsense: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := t.TempDir()
	if err := os.WriteFile(filepath.Join(changed, "README.md"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args   string
		status int
		want   []string
	}{
		{"--help", 0, []string{"demo", "proxy"}},
		{"", 0, []string{"USAGE"}},
		{"nonsense", 2, []string{`no command "nonsense"`}},
		{"replay help", 1, []string{"help: no such file"}},
		{"replay x --help", 0, []string{"USAGE"}},
		{"help repaly", 2, []string{`no command "repaly"; did you mean replay?`}},
		{"replay x --format", 2, []string{"flag needs an argument: --format"}},
		{"replay x --fromat=alb", 2, []string{"no flag --fromat; did you mean --format?"}},
		{"demo --web.enable-pprof=x --rate=x", 2, []string{"--web.enable-pprof: ", `--rate: "x"`}},
		{"completion bash", 0, []string{"complete -o bashdefault -o default -F _windowstat windowstat"}},
		{"completion zsh", 0, []string{"#compdef windowstat"}},
		{"completion fish", 0, []string{"complete -c windowstat"}},
		{"demo --metric-log --generate-bash-completion", 0, []string{"--metric-log.dir\t"}},
		{"repaly", 2, []string{`no command "repaly"; did you mean replay?`}},
		{"demo --nonsense", 2, []string{"no flag --nonsense"}},
		{
			"demo --metric-log.max-byte=3", 2,
			[]string{"no flag --metric-log.max-byte; did you mean --metric-log.max-bytes?"},
		},
		{"demo extra", 2, []string{`"extra"`}},
		{"demo --rate=x", 2, []string{"rate"}},
		{
			"demo --rate=0 --duration=-1s --log.level=loud --log.format=xml --web.telemetry-path=/ " +
				"--web.listen-address=9719", 2,
			[]string{
				"--rate: 0", "--duration: -1s", "--log.level:", "--log.format:", "--web.telemetry-path:",
				`--web.listen-address: "9719"`,
			},
		},
		{"demo --rate=NaN", 2, []string{"--rate: NaN"}},
		{"demo --rate=1e9", 2, []string{"--rate: 1e+09"}},
		{"demo --web.listen-address=127.0.0.1:99999", 2, []string{`port "99999"`}},
		{"demo --web.telemetry-path=/-/ready", 2, []string{"--web.telemetry-path:", "other pages are below /-/"}},
		{"demo --web.telemetry-path=/live", 2, []string{"--web.telemetry-path:", "other pages are below /live/"}},
		{"demo --web.telemetry-path=//x", 2, []string{"--web.telemetry-path:"}},
		{"demo --web.telemetry-path=/a/../b", 2, []string{"--web.telemetry-path:"}},
		{"demo --web.telemetry-path=/a%zz", 2, []string{"--web.telemetry-path:"}},
		{"demo --web.listen-address=127.0.0.1:", 2, []string{"--web.listen-address:"}},
		{"proxy --upstream=127.0.0.1:1", 2, []string{"--upstream:", "is not http://host:port"}},
		{"proxy --upstream=http://127.0.0.1:99999", 2, []string{"--upstream:", "99999"}},
		{"demo --web.config.file=" + file, 2, []string{"--web.config.file:", "nonsense"}},
		{"demo --web.config.file=" + file + ".missing", 2, []string{"--web.config.file:"}},
		{
			"demo --duration=1s --web.listen-address=" + taken.Addr().String(), 1,
			[]string{"--web.listen-address:", "in use"},
		},
		{
			"demo --duration=1s --web.listen-address=127.0.0.1:0 --metric-log.dir=" + file, 1,
			[]string{"--metric-log.dir:", "not a directory"},
		},
		{
			"demo --duration=1s --web.listen-address=127.0.0.1:0 --metric-log.dir=/proc/self", 1,
			[]string{"--metric-log.dir:"},
		},
		{"proxy", 2, []string{"--upstream: is required"}},
		{
			"proxy --upstream=http://x --proxy.header-timeout=0s --proxy.stall-timeout=-1s " +
				"--proxy.idle-timeout=0s --proxy.max-connections=99999999 " +
				"--proxy.max-connections-per-host=-1 --proxy.trusted-proxies=nonsense", 2,
			[]string{
				"--proxy.header-timeout:", "--proxy.stall-timeout:", "--proxy.idle-timeout:",
				"--proxy.max-connections:", "ulimit -n",
				"--proxy.max-connections-per-host:", `--proxy.trusted-proxies: "nonsense"`,
			},
		},
		{
			"proxy --upstream=ftp://x --max-resources=0 --proxy.path-depth=0 --proxy.upstream-timeout=0s " +
				"--proxy.listen-address=x", 2,
			[]string{
				"--upstream:", "--max-resources:", "--proxy.path-depth:", "--proxy.upstream-timeout:",
				"--proxy.listen-address:",
			},
		},
		{
			"proxy --upstream=http://x:1 --web.listen-address=127.0.0.1:0 --proxy.listen-address=" +
				taken.Addr().String(), 1, []string{"--proxy.listen-address:"},
		},
		{
			"proxy --upstream=http://x --max-origins=0 --proxy.origin-header=a:b " +
				"--metrics.by=day --limits.file=" + file, 2,
			[]string{
				"--max-origins:", "--proxy.origin-header:", "--metrics.by:",
				"--limits.file:", `unknown field "nonsense"`,
			},
		},
		{
			"demo --verify.url=http://x/api/v1/query --verify.label=resource=a --verify.config.file=" +
				file + ".missing", 2,
			[]string{
				"--verify.url: needs a metric log", "--verify.url: \"http://x/api/v1/query\"",
				`--verify.label: "resource"`, "--verify.config.file:",
			},
		},
		{"demo --verify.label=a=b", 2, []string{"--verify.label: needs --verify.url"}},
		{"demo --limits.file=" + file + ".missing", 2, []string{"--limits.file:", "no such file"}},
		{
			"demo --remote-write.url=ftp://x --remote-write.interval=1500ms --vm.push-url=http://x/ " +
				"--vm.push-label=resource=b --vm.push-config.file=" + file + ".missing", 2,
			[]string{
				`--remote-write.url: "ftp://x" is not`, "--remote-write.interval: 1.5s",
				`--vm.push-label: "resource"`, "--vm.push-config.file:",
			},
		},
		{
			"demo --metric-log.dir=/tmp/never --metric-log.max-bytes=-1 " +
				"--metric-log.max-age=1ms --metric-log.sync=1ms", 2,
			[]string{
				"--metric-log.max-bytes: -1", "--metric-log.max-age: 1ms",
				"--metric-log.sync: 1ms",
			},
		},
		{
			"demo --metric-log.dir=/tmp/never --metric-log.max-bytes=0 --metric-log.sync=0s --remote-write.url= " +
				"--limits.file=", 2,
			[]string{
				"--metric-log.max-bytes: 0", "--metric-log.sync: 0s", "--remote-write.url: is empty",
				"--limits.file: is empty",
			},
		},
		{
			"demo --metric-log.sync=5s --metric-log.max-age=1h", 2,
			[]string{"--metric-log.sync: needs --metric-log.dir", "--metric-log.max-age: needs --metric-log.dir"},
		},
		{
			"demo --remote-write.url=http://x --remote-write.label=a", 2,
			[]string{`--remote-write.label: "a" is not NAME=VALUE`},
		},
		{
			"demo --otlp.deltas --otlp.interval=2s", 2,
			[]string{"--otlp.deltas: needs --otlp.url", "--otlp.interval: needs --otlp.url"},
		},
		{"demo --remote-write.interval=5s", 2, []string{"--remote-write.interval: needs --remote-write.url"}},
		{
			"demo --vm.push-url=http://x --vm.push-config.file=" + file, 2,
			[]string{"--vm.push-config.file:", "nonsense"},
		},
		{"dashboards", 2, []string{"--out: a directory is needed"}},
		{"dashboards --out=" + file, 1, []string{"not a directory"}},
		{
			"dashboards --out=" + changed, 1,
			[]string{"README.md has other contents", "nothing was written; --overwrite"},
		},
		{"dashboards x", 2, []string{"takes no arguments"}},
		{
			"proxy --upstream=http://x --skip=/a/{x --skip=OPTIONS --exception-status=6", 2,
			[]string{"--skip: \"/a/{x\"", `"OPTIONS" is not a pattern`, `--exception-status: "6"`},
		},
		{"proxy --upstream=http://x/?q=1", 2, []string{"--upstream:"}},
		{"proxy --upstream=http://%zz", 2, []string{"--upstream:"}},
		{
			"proxy --upstream=http://x --route=GET --route=/a --route=/a --routes=" + file + ".missing " +
				"--max-path-values=0", 2,
			[]string{
				`--route: "GET" is not a pattern such as GET /users/{id}: `,
				`--route: "/a" is in --route already`, "--routes: open ", "--max-path-values: 0",
			},
		},
		{"replay --routes-only x", 2, []string{"--routes-only: needs --routes or --route"}},
		{ // flags without an effect
			"proxy --upstream=http://x --routes-only --routes=/dev/null --proxy.path-depth=3 " +
				"--max-path-values=5 --max-origins=5", 2,
			[]string{
				"--routes-only: needs", "--proxy.path-depth: cannot be combined with --routes-only",
				"--max-path-values: cannot be combined with --routes-only",
				"--max-origins: needs --proxy.origin-header",
			},
		},
		{
			"proxy --upstream=http://x --routes=" + file + ".one --routes=" + file + ".two", 2,
			[]string{file + ".one: no such file", file + ".two: no such file"},
		},
	} {
		p := launch(t, strings.Fields(tc.args)...)
		if status := p.wait(t); status != tc.status {
			t.Errorf("%s: status %d, want %d", tc.args, status, tc.status)
		}
		for _, part := range tc.want {
			if !strings.Contains(p.output(), part) {
				t.Errorf("%s: no %q in\n%s", tc.args, part, p.output())
			}
		}
	}
}
