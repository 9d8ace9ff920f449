package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// attackers is the number of concurrent attacking connections. WINDOWSTAT_E2E_ATTACK sets a higher number, and keeps
// the proxy's own timeouts.
const attackers = 300

// An attack describes the data that connections send to the port of the proxied service or to the port of the pages.
type attack struct {
	name     string
	pages    bool
	many     bool                         // each connection has its own host
	again    bool                         // send again after each response; otherwise send once, and then nothing
	password bool                         // the pages have a password
	request  func(random uint64) []string // the parts of the request

	// flood, if not nil, runs instead of request, and restarts when the server closes the connection. It uses conns
	// connections, or the number of other attacks with again. The connections come from the number of hosts in
	// addresses, or from one host.
	flood        flood
	conns, hosts int
	tls          bool   // the pages have TLS and HTTP/2
	replaced     string // the kind of file that replaces the file of passwords before the attack: fifo or /dev/zero
}

func (a *attack) String() string {
	if a.pages {
		return a.name + ", the pages"
	}
	return a.name + ", the service"
}

func sends(parts ...string) func(uint64) []string { return func(uint64) []string { return parts } }

var attacks = []attack{
	{name: "nothing at all", request: sends()},
	{name: "half a header", request: sends("GET / HTTP/1.1\r\nHost: x\r\nX-Half: ")},
	{name: "half a header, of many tiny ones", request: sends("GET / HTTP/1.1\r\nHost: x\r\n" + tinyHeaders(15<<10))},
	{name: "half a body", request: sends("POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nhalf")},
	{
		name:    "half a body that the service does not read",
		request: sends("POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nhalf"),
	},
	{
		name: "half a body, of as many hosts", many: true,
		request: sends("POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nhalf"),
	},
	{name: "readers that do not read", request: sends("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")},
	{name: "made-up paths", again: true, request: func(r uint64) []string {
		return []string{fmt.Sprintf("GET /%x/%x HTTP/1.1\r\nHost: x\r\n\r\n", r>>32, r)}
	}},
	{name: "nothing at all", pages: true, request: sends()},
	{name: "half a header", pages: true, request: sends("GET / HTTP/1.1\r\nHost: x\r\nX-Half: ")},
	{
		name: "half a body", pages: true,
		request: sends("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nhalf"),
	},
	{name: "made-up cursors", pages: true, again: true, request: func(r uint64) []string {
		return []string{fmt.Sprintf("GET /metrics/seconds?cursor=%x HTTP/1.1\r\nHost: x\r\n\r\n", r)}
	}},
	{
		name: "questions in a loop", pages: true, again: true,
		request: sends("GET /live/seconds HTTP/1.1\r\nHost: x\r\n\r\n"),
	},
	{name: "requests without waiting for responses", pages: true, again: true, flood: pipelined},
	{name: "2,500 headers in a loop", pages: true, again: true, flood: smallHeaders},
	{name: "2,500 headers in a loop", again: true, conns: 20, flood: smallHeaders},
	{name: "streams of 200 hosts", pages: true, again: true, conns: 10_000, hosts: 200, flood: liveStreams},
	{name: "PING frames of HTTP/2", pages: true, again: true, conns: 20, tls: true, flood: pings},
	{name: "SETTINGS frames of HTTP/2", pages: true, again: true, conns: 20, tls: true, flood: settings},
	{name: "reset streams of HTTP/2", pages: true, again: true, conns: 20, tls: true, flood: resets},
	{
		name: "a FIFO as the file of passwords", pages: true, again: true, password: true, replaced: "fifo",
		request: sends("GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"),
	},
	{
		name: "/dev/zero as the file of passwords", pages: true, again: true, password: true, replaced: "/dev/zero",
		request: sends("GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"),
	},
	{name: "wrong passwords", pages: true, again: true, password: true, request: wrongPassword},
	{
		name: "wrong passwords, of as many hosts", pages: true, again: true, many: true,
		password: true, request: wrongPassword,
	},
}

func wrongPassword(random uint64) []string {
	r, _ := http.NewRequest(http.MethodGet, "http://x/metrics", http.NoBody)
	r.SetBasicAuth("admin", fmt.Sprint(random))
	return []string{"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: " + r.Header.Get("Authorization") + "\r\n\r\n"}
}

// thePassword is the password of webPassword in a file of --web.config.file.
const (
	thePassword = "fakepassword"
	webPassword = "basic_auth_users: {admin: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}\n"
)

// One host holds as many connections as possible, or sends requests as fast as possible, in each of these ways. A
// scraper and a client on another host must be served during the whole attack. After the timeouts the attacker must
// hold nothing. With -update the test writes the table of docs/security.md.
func TestProxyAttacked(t *testing.T) {
	t.Parallel()
	size := scale{
		connections: attackers, asking: 20, flood: time.Second, wait: catchUp,
		args: []string{"--proxy.stall-timeout=3s", "--proxy.header-timeout=3s", "--proxy.idle-timeout=3s"},
	}
	more := os.Getenv("WINDOWSTAT_E2E_ATTACK")
	if more != "" {
		n, err := strconv.Atoi(more)
		if err != nil {
			t.Fatal(err)
		}
		size = scale{connections: n, asking: 240, flood: 5 * time.Second, wait: 3 * time.Minute}
	}
	upstream := freeAddress(t)
	service := command(t, os.Args[0])
	service.Env = append(os.Environ(), upstreamAddress+"="+upstream)
	service.Stderr = os.Stderr
	startReady(t, service, listens(upstream))
	t.Cleanup(func() {
		_ = service.Process.Kill()
		_ = service.Wait()
	})
	binary := buildWindowstat(t)
	var rows []*row
	for i := range attacks {
		t.Run(attacks[i].String(), func(t *testing.T) {
			rows = append(rows, attacks[i].run(t, size, binary, upstream))
		})
	}
	if *update && more != "" && len(rows) == len(attacks) {
		writeAttacks(t, rows)
	}
}

// upstreamAddress is the environment variable that makes the test's executable run as the proxied service. A service in
// the process of the attackers would wait for their goroutines.
const upstreamAddress = "WINDOWSTAT_E2E_UPSTREAM"

// runUpstream serves the proxied service until the process is killed.
func runUpstream(address string) error {
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			for b := make([]byte, 1<<16); r.Context().Err() == nil; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		case "/refuse":
			http.Error(w, "no", http.StatusForbidden)
		default:
			_, _ = io.Copy(io.Discard, r.Body)
		}
	}))
}

// scale is the size of the attacks.
type scale struct {
	connections, asking int           // holding connections; connections that repeat requests
	flood, wait         time.Duration // duration of the requests; time until everything held must be released
	args                []string
}

func (a *attack) run(t *testing.T, size scale, binary, upstream string) *row {
	t.Helper()
	front, page := freeAddress(t), freeAddress(t)
	args := append([]string{
		"proxy", "--upstream=http://" + upstream, "--proxy.listen-address=" + front,
		"--web.listen-address=" + page,
	}, size.args...)
	password, scheme := "", "http://"
	dir := t.TempDir()
	file, config := filepath.Join(dir, "web.yml"), ""
	if a.password {
		config, password = webPassword, thePassword
	}
	if a.tls {
		config, scheme = webTLS(t, dir), "https://"
	}
	if config != "" {
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--web.config.file="+file)
	}
	process := launch(t, front, "", binary, args...).Process.Pid
	base := held(t, page, process)
	r := &row{attack: a, connections: size.connections, files: base.files}
	to := front
	if a.pages {
		to = page
	}
	if a.again {
		r.connections = size.asking
	}
	if a.conns > 0 {
		r.connections = min(a.conns, max(20, size.connections*2))
	}
	// The file was in this place before.
	if status, err := fromElsewhere(scheme+page+metricsPath, password); err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	if a.replaced != "" {
		replaceFile(t, file, a.replaced)
	}
	scraper, client := observe(t, scheme+page+metricsPath, password), observe(t, "http://"+front+"/", "")
	attacking, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for i := range r.connections {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, 1)}}
		if a.many {
			d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}
		}
		if a.hosts > 0 {
			d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1, 0, byte(i%a.hosts))}
		}
		all.Go(func() { a.attack(attacking, d, to, r) })
	}
	begin := time.Now()
	for r.gone = 0; ; time.Sleep(100 * time.Millisecond) {
		now := held(t, "", process)
		r.files, r.memory = max(r.files, now.files), now.most
		if r.gone = time.Since(begin); a.again && r.gone > size.flood {
			break
		}
		all := r.made.Load() >= int64(r.connections)
		// Some are idle connections to the service.
		if !a.again && all && r.gone > time.Second && now.files < base.files+r.connections/10 {
			break
		}
		if r.gone > size.wait {
			t.Errorf("after %v the process has %d files open", r.gone, now.files)
			break
		}
	}
	stop()
	all.Wait()
	r.scraper, r.client = scraper(), client()
	t.Log(r, r.gone.Round(time.Second))
	if r.scraper.Failed+r.client.Failed > 0 {
		t.Errorf("%v: honest requests failed: %s %s", r, r.scraper.Why, r.client.Why)
	}
	return r
}

// attack attacks on one connection until ctx ends. If a repeats its requests, attack reopens a closed connection.
func (a *attack) attack(ctx context.Context, d net.Dialer, to string, r *row) {
	if a.flood != nil {
		attackUntil(ctx, d, to, a.tls, a.flood, func(c net.Conn) net.Conn {
			r.made.Add(1)
			return &countingConn{c, &r.sent}
		})
		return
	}
	for ctx.Err() == nil {
		c, err := d.DialContext(ctx, "tcp", to)
		if err != nil {
			continue
		}
		r.made.Add(1)
		_ = c.(*net.TCPConn).SetReadBuffer(1 << 12)
		end := context.AfterFunc(ctx, func() { c.Close() })
		for read := bufio.NewReader(c); err == nil; {
			for _, part := range a.request(rand.Uint64()) {
				n, _ := io.WriteString(c, part) // the server may have closed c to accept the next one
				r.sent.Add(int64(n))
			}
			if !a.again {
				<-ctx.Done()
				return
			}
			var resp *http.Response
			if resp, err = http.ReadResponse(read, nil); err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
			}
		}
		end()
		c.Close()
	}
}

// fromElsewhere sends an honest request from another host.
func fromElsewhere(url, password string) (status int, err error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	transport := &http.Transport{
		DialContext: d.DialContext, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	client := http.Client{Timeout: 20 * time.Second, Transport: transport}
	r, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	if password != "" {
		r.SetBasicAuth("admin", password)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// replaceFile replaces a file with a FIFO or with a link to a device. A wrong mount or a wrong path has this effect.
func replaceFile(t *testing.T, path, by string) {
	t.Helper()
	err := os.Remove(path)
	if by == "fifo" {
		err = errors.Join(err, syscall.Mkfifo(path, 0o600))
	} else {
		err = errors.Join(err, os.Symlink(by, path))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// holdings are the resources that a process holds, and its peak memory.
type holdings struct{ files, goroutines, kilobytes, most int }

func (h holdings) String() string {
	return fmt.Sprintf("%d files, %d goroutines, %d MB", h.files, h.goroutines, h.kilobytes/1000)
}

var (
	goroutines   = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)
	resident     = regexp.MustCompile(`VmRSS:\s+(\d+)`)
	peakResident = regexp.MustCompile(`VmHWM:\s+(\d+)`)
)

// held reads the holdings of a process. The goroutines are included only if the address of its pages is given.
func held(t *testing.T, page string, process int) (h holdings) {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", process))
	if err != nil {
		t.Fatal(err)
	}
	h.files = len(files)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		t.Fatal(err)
	}
	number := func(re *regexp.Regexp, text []byte) (n int) {
		if m := re.FindSubmatch(text); m != nil {
			n, _ = strconv.Atoi(string(m[1]))
		}
		return n
	}
	h.kilobytes, h.most = number(resident, status), number(peakResident, status)
	if page == "" {
		return h
	}
	resp, err := http.Get("http://" + page + metricsPath)
	if err != nil {
		return h // the caller checks, too
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	h.goroutines = number(goroutines, b)
	return h
}
