//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// freeAddress returns an address without a listener. Other tests use other hosts, so their connections cannot take it.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.2.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// command is a process that serves pages.
type command struct {
	*exec.Cmd
	pages  string // address of the pages
	output bytes.Buffer
}

func start(t *testing.T, args ...string) *command {
	t.Helper()
	c := &command{pages: freeAddress(t)}
	c.Cmd = exec.Command(os.Args[0], append(args, "--web.listen-address="+c.pages)...)
	c.Env = append(os.Environ(), asCommand+"=1")
	c.Stdout, c.Stderr = &c.output, &c.output
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

// ready returns the status of /-/ready, or 0 without a response.
func (c *command) ready() int { return statusOf("http://" + c.pages + "/-/ready") }

func statusOf(url string) int {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: maxWait}
	resp, err := client.Get(url)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

// until polls /-/ready until it has the wanted status. Any status that is neither wanted nor allowed is an error.
func (c *command) until(t *testing.T, want int, allowed ...int) {
	t.Helper()
	for deadline := time.Now().Add(maxWait); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		switch got := c.ready(); {
		case got == want:
			return
		case !slices.Contains(allowed, got):
			t.Fatalf("/-/ready is %d; want %d:\n%s", got, want, &c.output)
		}
	}
	t.Fatalf("/-/ready is not %d", want)
}

func (c *command) ends(t *testing.T) {
	t.Helper()
	if err := c.Wait(); err != nil {
		t.Errorf("%v:\n%s", err, &c.output)
	}
}

// The proxy is not ready until the port for clients is open. Loading many saved names delays it. After the signal to
// end, the proxy is not ready immediately, but serves clients for the delay. Then it completes running requests, and
// its pages end last.
func TestReadinessOfTheProxy(t *testing.T) {
	t.Parallel()
	slow, arrived := make(chan struct{}), make(chan struct{}, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			arrived <- struct{}{}
			<-slow
		}
	}))
	t.Cleanup(upstream.Close)
	type name struct {
		Name        string `json:"name"`
		Calls, Last int64
	}
	var names []name
	for i := range 100_000 {
		names = append(names, name{fmt.Sprint("GET /page/", i), 1, time.Now().Unix()})
	}
	saved, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "proxy-names.json"), saved, 0o600); err != nil {
		t.Fatal(err)
	}
	const delay = 3 * time.Second
	front := "http://" + freeAddress(t)
	c := start(t, "proxy", "--upstream="+upstream.URL, "--proxy.listen-address="+front[len("http://"):],
		"--metric-log.dir="+dir, "--max-resources=100000", "--shutdown.delay="+delay.String())
	c.until(t, http.StatusServiceUnavailable, 0)
	c.until(t, http.StatusOK, http.StatusServiceUnavailable)
	if got := statusOf(front + "/"); got != http.StatusOK {
		t.Errorf("the proxy is ready, and the port for clients returns %d", got)
	}

	var all sync.WaitGroup
	all.Go(func() {
		if got := statusOf(front + "/slow"); got != http.StatusOK {
			t.Errorf("a running request received %d", got)
		}
	})
	<-arrived
	signalled := time.Now()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.until(t, http.StatusServiceUnavailable, http.StatusOK)
	if got := statusOf(front + "/"); got != http.StatusOK &&
		time.Since(signalled) < delay { // a slow machine may miss the delay
		t.Errorf("a client receives %d within the delay", got)
	}
	for statusOf(front+"/") != 0 { // until the delay is over
		time.Sleep(10 * time.Millisecond)
	}
	for path, want := range map[string]int{
		"/-/ready": http.StatusServiceUnavailable, "/-/healthy": http.StatusOK,
		"/metrics": http.StatusOK,
	} {
		if got := statusOf("http://" + c.pages + path); got != want {
			t.Errorf("while a request is finished %s is %d, want %d", path, got, want)
		}
	}
	close(slow)
	all.Wait()
	c.ends(t)
}

// A command is ready once, after a time in which it is not ready, and is not ready after the signal to end. Without a
// delay it ends immediately.
func TestReadinessOfOtherCommands(t *testing.T) {
	t.Parallel()
	grows := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(grows, []byte(accessLine(time.Now(), "/a", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"demo":            {"demo", "--rate=100"},
		"replay --follow": {"replay", "--follow", grows},
		"proxy":           {"proxy", "--upstream=http://127.0.0.1:1", "--proxy.listen-address=127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, args...)
			c.until(t, http.StatusOK, 0, http.StatusServiceUnavailable)
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			for was := http.StatusOK; was != 0; { // it may end immediately
				got := c.ready()
				if got == http.StatusOK && was != got {
					t.Errorf("/-/ready is %d after %d", got, was)
				}
				was = got
			}
			c.ends(t)
		})
	}
}
