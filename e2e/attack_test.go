package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// attackers is how many connections attack at a time; WINDOWSTAT_E2E_ATTACK asks for more, with the proxy's own timeouts.
const attackers = 300

// One host holds as many connections as it can, in each of these ways. Another one is served all the time, and so is the page of
// metrics; after the timeouts nothing is held any more.
var attacks = []struct{ name, request string }{
	{"half-sent bodies", "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nhalf"},
	{"half-sent bodies that nobody reads", "POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf"},
	{"half-sent headers", "GET / HTTP/1.1\r\nHost: x\r\nX-Half: "},
	{"slow readers", "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"nothing at all", ""},
}

func TestProxyAttacked(t *testing.T) {
	t.Parallel()
	n, args, wait := attackers, []string{"--proxy.stall-timeout=3s", "--proxy.header-timeout=3s", "--proxy.idle-timeout=3s"}, 30*time.Second
	if more := os.Getenv("WINDOWSTAT_E2E_ATTACK"); more != "" {
		var err error
		if n, err = strconv.Atoi(more); err != nil {
			t.Fatal(err)
		}
		args, wait = nil, 3*time.Minute
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	t.Cleanup(up.Close)
	front, page, process := startWindowstatProxy(t, strings.TrimPrefix(up.URL, "http://"), args...)
	base := held(t, page, process)
	t.Logf("before: %v", base)
	for _, a := range attacks {
		for _, to := range []string{front, page} {
			if to == page && (strings.Contains(a.request, "GET /endless") || n == attackers && strings.Contains(a.request, "/refuse")) {
				continue // the page has an end, and a minute for bodies
			}
			attack(t, a.name, a.request, to, n, wait, front, page, process, base)
		}
	}
}

func attack(t *testing.T, name, request, to string, n int, wait time.Duration, front, page string, process int, base holdings) {
	t.Helper()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range n {
		c, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).SetReadBuffer(1 << 12)
		_, _ = io.WriteString(c, request) // it may have been closed to make room for the next
		conns = append(conns, c)
	}
	begin := time.Now()
	most := held(t, page, process)
	for {
		for _, url := range []string{"http://" + front + "/", "http://" + page + metricsPath} {
			if status, err := fromElsewhere(url); err != nil || status != http.StatusOK {
				t.Errorf("%s: another host gets %d, %v", name, status, err)
			}
		}
		now := held(t, page, process)
		most = holdings{max(most.files, now.files), max(most.goroutines, now.goroutines), max(most.kilobytes, now.kilobytes)}
		if now.files < base.files+30 {
			t.Logf("%d %s at %s: at most %v; gone after %v", n, name, to, most, time.Since(begin).Round(time.Second))
			return
		}
		if time.Since(begin) > wait {
			t.Errorf("%d %s at %s: at most %v, and still %v after %v", n, name, to, most, now, wait)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// fromElsewhere is an honest request of another host.
func fromElsewhere(url string) (status int, err error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// holdings are what a process has.
type holdings struct{ files, goroutines, kilobytes int }

func (h holdings) String() string {
	return fmt.Sprintf("%d files, %d goroutines, %d MB", h.files, h.goroutines, h.kilobytes/1000)
}

var (
	goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)
	resident   = regexp.MustCompile(`VmRSS:\s+(\d+)`)
)

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
	if m := resident.FindSubmatch(status); m != nil {
		h.kilobytes, _ = strconv.Atoi(string(m[1]))
	}
	resp, err := http.Get("http://" + page + metricsPath)
	if err != nil {
		return h // the caller asks, too
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if m := goroutines.FindSubmatch(b); m != nil {
		h.goroutines, _ = strconv.Atoi(string(m[1]))
	}
	return h
}
