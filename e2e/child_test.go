package e2e

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/push"
)

// What tells the test's executable that it is a service, and where.
const (
	childDir     = "WINDOWSTAT_E2E_DIR"
	childAddress = "WINDOWSTAT_E2E_ADDRESS"
	childPush    = "WINDOWSTAT_E2E_PUSH" // URLs, with spaces between, for remote write, of an import endpoint, or for OTLP
)

// The jobs of what a child pushes to an import endpoint, by remote write 2.0, and by OTLP.
const (
	version2Job  = clusterJob + "-2.0"
	importedJob  = clusterJob + "-imported"
	otlpJob      = clusterJob + "-otlp"
	otlpDeltaJob = clusterJob + "-otlp-delta"
)

// wantsDeltas is what the path of a URL ends with to which a child pushes deltas, and wantsVersion2 for remote write 2.0.
const (
	wantsDeltas   = "?deltas"
	wantsVersion2 = "?version2"
)

// runChild is a service under load until it is told to end, or killed.
func runChild(dir, addr, urls string) error {
	var pushes []push.Options
	for _, url := range strings.Fields(urls) {
		format, job := push.RemoteWrite, clusterJob
		switch {
		case strings.Contains(url, "/import/"):
			format, job = push.VictoriaMetrics, importedJob
		case strings.HasSuffix(url, wantsVersion2):
			format, job = push.RemoteWrite2, version2Job
		case strings.HasSuffix(url, wantsDeltas):
			format, job = push.OTLPDelta, otlpDeltaJob
		case strings.HasSuffix(url, "/v1/metrics"):
			format, job = push.OTLP, otlpJob
		}
		pushes = append(pushes, push.Options{
			Format: format, URL: url, Labels: map[string]string{"job": job, "instance": addr}, Histogram: job == otlpJob || job == otlpDeltaJob,
			Timeout: 5 * time.Second, // of a server that is killed, too
		})
	}
	s, err := newService(dir, pushes)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	pages := &http.Server{Handler: s.pages, ReadHeaderTimeout: time.Second, ConnState: s.seconds.ConnState}
	finish := s.out.Start()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- pages.Serve(l) }()
	go func() { ended <- s.load(ctx, math.MaxInt32) }()
	return errors.Join(<-ended, finish(), pages.Shutdown(context.Background()))
}

// A child is a service that is a process of its own, so that it can be killed. It leaves its metric log and the positions
// of its readers to the next one.
type child struct {
	dir, addr string
	push      string
	env       []string
	process   *exec.Cmd
}

// start starts a process, and waits until it serves.
func (c *child) start(t *testing.T) {
	t.Helper()
	c.process = command(t, os.Args[0])
	c.process.Env = append(os.Environ(), childDir+"="+c.dir, childAddress+"="+c.addr, childPush+"="+c.push)
	c.process.Env = append(c.process.Env, c.env...)
	c.process.Stderr = os.Stderr
	startReady(t, c.process, listens(c.addr))
}

// end lets the process end what it is doing.
func (c *child) end(t *testing.T) {
	t.Helper()
	begin := time.Now()
	if err := errors.Join(c.process.Process.Signal(syscall.SIGTERM), c.process.Wait()); err != nil {
		t.Errorf("the service does not end well: %v", err)
	}
	t.Logf("the service has ended after %v", time.Since(begin).Round(time.Millisecond))
}

// kill gives the process no chance to write anything, and waits until it is gone.
func (c *child) kill() {
	_ = c.process.Process.Signal(syscall.SIGKILL)
	_ = c.process.Wait() // it says that it was killed
}
