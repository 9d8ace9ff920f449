package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A job is how a server scrapes a page.
type job struct {
	name     string
	path     string
	interval time.Duration
}

// A server is a running Prometheus or VictoriaMetrics, with a directory that outlives its processes.
type server struct {
	name       string
	executable string
	isVictoria bool
	dir        string
	addr       string
	process    *exec.Cmd
}

// startServer starts a server that scrapes the target, and waits until it is ready.
func startServer(t *testing.T, name string, p program, executable, target string, jobs []job) *server {
	t.Helper()
	s := &server{name: name, executable: executable, isVictoria: p.name == victoria.name, dir: t.TempDir(), addr: freeAddress(t)}
	if err := os.WriteFile(filepath.Join(s.dir, "config.yml"), []byte(s.config(target, jobs)), 0o644); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	t.Cleanup(func() {
		s.end(syscall.SIGKILL) // what it holds is thrown away
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", s.name, s.tail())
		}
	})
	return s
}

// config has every job read with a cursor of its own; a page that has no cursors ignores it.
func (s *server) config(target string, jobs []job) string {
	var b strings.Builder
	b.WriteString("scrape_configs:\n")
	for _, j := range jobs {
		fmt.Fprintf(&b, "- job_name: %s\n  metrics_path: %s\n  scrape_interval: %v\n  scrape_timeout: 4s\n", j.name, j.path, j.interval)
		fmt.Fprintf(&b, "  static_configs: [{targets: ['%s']}]\n", target)
		if j.path == metricsPath {
			continue
		}
		fmt.Fprintf(&b, "  params: {cursor: ['%s:%s']}\n", s.name, j.name)
		b.WriteString("  honor_timestamps: true\n") // VictoriaMetrics does not by default
		if s.isVictoria {
			b.WriteString("  no_stale_markers: true\n") // they would meet the samples, of which they take the time
		}
	}
	return b.String()
}

// start starts a process on what an earlier one left.
func (s *server) start(t *testing.T) {
	t.Helper()
	config, data := filepath.Join(s.dir, "config.yml"), filepath.Join(s.dir, "data")
	args := []string{"--config.file=" + config, "--storage.tsdb.path=" + data, "--web.listen-address=" + s.addr}
	if s.isVictoria {
		// A query is answered as of now, not as of half a minute ago.
		args = []string{"-promscrape.config=" + config, "-storageDataPath=" + data, "-httpListenAddr=" + s.addr, "-search.latencyOffset=0s"}
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx := context.Background()
	if timeout, ok := t.Deadline(); ok { // no cleanup runs after it, and no server must stay behind
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, timeout.Add(-3*time.Second))
		t.Cleanup(cancel)
	}
	s.process = exec.CommandContext(ctx, s.executable, args...)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		t.Fatalf("start %s: %v", s.name, err)
	}
	begin := time.Now()
	for {
		if _, err = s.get("/-/ready", nil); err == nil {
			break
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("%s does not get ready: %v\n%s", s.name, err, s.tail())
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%s ready after %v", s.name, time.Since(begin).Round(10*time.Millisecond))
}

// end sends the process a signal, and waits until it is gone.
func (s *server) end(signal syscall.Signal) {
	_ = s.process.Process.Signal(signal)
	_ = s.process.Wait() // it says that it was killed
}

func (s *server) tail() string {
	log, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-3000):])
}

// freeAddress is one on which nobody listens, and very likely nobody will.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *server) get(path string, parameters url.Values) (body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if body, err = io.ReadAll(resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, body)
	}
	return body, err
}

// A sample is a value at a Unix time in milliseconds.
type sample struct {
	at    int64
	value float64
}

// UnmarshalJSON reads [1700000000.5, "12"].
func (s *sample) UnmarshalJSON(b []byte) error {
	var at float64
	var value string
	if err := json.Unmarshal(b, &[]any{&at, &value}); err != nil {
		return err
	}
	var err error
	s.at = int64(at*1000 + 0.5)
	s.value, err = strconv.ParseFloat(value, 64)
	return err
}

// A series is an element of an answer: a vector's has a value, that of a range selector all its samples.
type series struct {
	Metric map[string]string
	Value  sample
	Values []sample
}

// query asks for an expression as of now.
func (s *server) query(t *testing.T, expression string) []series {
	t.Helper()
	body, err := s.get("/api/v1/query", url.Values{"query": {expression}, "time": {strconv.FormatInt(time.Now().Unix(), 10)}, "nocache": {"1"}})
	if err != nil {
		t.Fatalf("%s: %s: %v", s.name, expression, err)
	}
	var answer struct {
		Data struct{ Result []series }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%s: %s: %v\n%s", s.name, expression, err, body)
	}
	return answer.Data.Result
}

// number is the answer to an expression that has one.
func (s *server) number(t *testing.T, expression string) float64 {
	t.Helper()
	result := s.query(t, expression)
	if len(result) != 1 {
		t.Fatalf("%s: %s has %d results", s.name, expression, len(result))
	}
	return result[0].Value.value
}
