package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A job configures how a server scrapes a page.
type job struct {
	name     string
	path     string
	targets  []string // addresses of services
	interval time.Duration
	timeout  time.Duration // 4 s if zero
	cursor   string        // a name that no other job has if empty
	metrics  []string      // requested metrics; all if empty
	// "classic" or "native" for the histogram of response times; without a histogram if empty.
	histogram string
}

// A server is a running Prometheus or VictoriaMetrics, with a directory that outlives its processes.
type server struct {
	name       string
	executable string
	args       []string
	isVictoria bool
	dir        string
	addr       string
	ready      string    // path that responds when the server is ready; /-/ready if empty
	queries    string    // prefix of the paths of queries
	stores     []*server // servers with the data, in a cluster
	process    *exec.Cmd
	ended      chan struct{} // closed at the end of the process
	stopped    bool          // the test ended it
	settled    int64         // the server has shown all seconds before this one, see await
	comesUntil time.Time     // deadline for showing all, see eventually
}

// startServers starts a server of each program.
func startServers(t *testing.T, jobs ...job) []*server {
	t.Helper()
	return []*server{
		startServer(t, "prometheus-3", prometheus3, jobs...),
		startServer(t, "prometheus-2", prometheus2, jobs...),
		startServer(t, "victoria", victoria, jobs...),
	}
}

// startServer starts a server with some jobs, and waits until it is ready.
func startServer(t *testing.T, name string, p program, jobs ...job) *server {
	t.Helper()
	s := prepareServer(t, name, p, jobs...)
	s.start(t)
	return s
}

// prepareServer creates a server with some jobs. The caller may add to its flags before the start.
func prepareServer(t *testing.T, name string, p program, jobs ...job) *server {
	t.Helper()
	s := newServer(t, name, p.path(t), p.name == victoria.name)
	s.configure(t, s.config(jobs))
	return s
}

// startConfigured starts a server with a configuration, and waits until it is ready.
func startConfigured(t *testing.T, name string, p program, config string) *server {
	t.Helper()
	s := newServer(t, name, p.path(t), p.name == victoria.name)
	s.configure(t, config)
	s.start(t)
	return s
}

// configure gives the server its arguments.
func (s *server) configure(t *testing.T, text string) {
	t.Helper()
	config, data := s.writeConfig(t, text), filepath.Join(s.dir, "data")
	s.args = []string{
		"--config.file=" + config, "--storage.tsdb.path=" + data, "--web.listen-address=" + s.addr,
		"--web.enable-remote-write-receiver",
	}
	if s.isVictoria {
		s.args = []string{
			"-promscrape.config=" + config, "-storageDataPath=" + data, "-httpListenAddr=" + s.addr,
			"-enableTCP6",              // needed to dial ::1
			"-search.latencyOffset=0s", // evaluate queries now, not half a minute ago
		}
	}
}

// newServer creates a server without starting it. The end of the test deletes its data.
func newServer(t *testing.T, name, executable string, isVictoria bool) *server {
	s := &server{name: name, executable: executable, isVictoria: isVictoria, dir: t.TempDir(), addr: freeAddress(t)}
	t.Cleanup(func() {
		if s.process == nil {
			return
		}
		s.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", s.name, s.tail())
		}
	})
	return s
}

func (s *server) writeConfig(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(s.dir, "config.yml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// config returns a configuration in which every job reads with a cursor. A page without cursors ignores it.
func (s *server) config(jobs []job) string {
	var b strings.Builder
	b.WriteString("scrape_configs:\n")
	for _, j := range jobs {
		if j.timeout == 0 {
			j.timeout = 4 * time.Second
		}
		if j.cursor == "" {
			j.cursor = s.name + ":" + j.name
		}
		fmt.Fprintf(&b, "- job_name: %s\n  metrics_path: %s\n  scrape_interval: %v\n  scrape_timeout: %v\n", j.name,
			j.path, j.interval, j.timeout)
		fmt.Fprintf(&b, "  static_configs: [{targets: ['%s']}]\n", strings.Join(j.targets, "', '"))
		if j.path == metricsPath {
			continue
		}
		fmt.Fprintf(&b, "  params: {cursor: ['%s'], metric: [%s], histogram: [%s]}\n", j.cursor,
			strings.Join(j.metrics, ", "), j.histogram)
		if j.histogram == "native" {
			b.WriteString("  scrape_native_histograms: true\n")
		}
		b.WriteString("  honor_timestamps: true\n") // VictoriaMetrics does not by default
		if s.isVictoria {
			b.WriteString("  no_stale_markers: true\n") // they would have the times of samples
		}
	}
	return b.String()
}

// start starts a process with the data of earlier ones.
func (s *server) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	process, ended := command(t, s.executable, s.args...), make(chan struct{})
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatalf("start %s: %v", s.name, err)
	}
	go func() {
		_ = process.Wait() // the error reports the signal
		close(ended)
	}()
	s.process, s.ended, s.stopped = process, ended, false
	t.Cleanup(func() {
		if s.process == process && s.hasEnded() && !s.stopped {
			t.Errorf("%s has ended by itself", s.name) // another process may have responded at its address
		}
	})
	begin := time.Now()
	for {
		if _, err = s.get(cmp.Or(s.ready, "/-/ready"), nil); err == nil {
			break
		}
		if s.hasEnded() || time.Since(begin) > 2*catchUp {
			t.Fatalf("%s does not get ready: %v\n%s", s.name, err, s.tail())
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%s ready after %v", s.name, time.Since(begin).Round(10*time.Millisecond))
}

// command returns a command whose process never outlives the tests, even if they time out and no cleanup runs.
func command(t *testing.T, executable string, args ...string) *exec.Cmd {
	ctx := context.Background()
	if timeout, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, timeout.Add(-3*time.Second))
		t.Cleanup(cancel)
	}
	return exec.CommandContext(ctx, executable, args...)
}

// startReady starts a process, and waits until it is ready.
func startReady(t *testing.T, c *exec.Cmd, ready func() error) {
	t.Helper()
	begin := time.Now()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		err := ready()
		if err == nil {
			t.Logf("%s is ready after %v", filepath.Base(c.Path), time.Since(begin).Round(time.Millisecond))
			return
		}
		// The goroutine that started the process waits for it, so only read its state: Z means that the process has
		// ended.
		if stat, _ := os.ReadFile(fmt.Sprint("/proc/", c.Process.Pid, "/stat")); strings.Contains(string(stat),
			") Z ") {
			t.Fatalf("%s has ended before it was ready", c.Path)
		}
		if time.Since(begin) > 2*catchUp {
			t.Fatalf("%s does not get ready: %v", c.Path, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// listens returns a function that reports whether a process listens at an address.
func listens(addr string) func() error {
	return func() error {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			err = c.Close()
		}
		return err
	}
}

// saysReady returns a function that reports whether the pages of a windowstat show that it is ready.
func saysReady(pages string) func() error {
	return func() error {
		r, err := http.Get("http://" + pages + "/-/ready")
		if err != nil {
			return err
		}
		if err = r.Body.Close(); r.StatusCode != http.StatusOK {
			err = errors.New(r.Status)
		}
		return err
	}
}

// end sends the process a signal, and waits until it has ended.
func (s *server) end(signal syscall.Signal) {
	s.stopped = true
	_ = s.process.Process.Signal(signal)
	<-s.ended
}

func (s *server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

func (s *server) tail() string {
	log, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-3000):])
}
