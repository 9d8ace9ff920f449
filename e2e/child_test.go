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

// Environment variables that make the test's executable run as a service, and configure the addresses and files.
const (
	childDir     = "WINDOWSTAT_E2E_DIR"
	childAddress = "WINDOWSTAT_E2E_ADDRESS"
	childPush    = "WINDOWSTAT_E2E_PUSH" // URLs, separated by spaces: remote write, import endpoint, or OTLP
)

// Job names of the data that a child pushes to an import endpoint, by remote write 2.0, and by OTLP.
const (
	version2Job  = clusterJob + "-2.0"
	importedJob  = clusterJob + "-imported"
	otlpJob      = clusterJob + "-otlp"
	otlpDeltaJob = clusterJob + "-otlp-delta"
)

// wantsDeltas is the suffix of a URL's path that makes a child push deltas. wantsVersion2 selects remote write 2.0.
const (
	wantsDeltas   = "?deltas"
	wantsVersion2 = "?version2"
)

// runChild runs a service under load until a signal ends it or kills it.
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
			Format: format, URL: url, Labels: map[string]string{"job": job, "instance": addr},
			Histogram: job == otlpJob || job == otlpDeltaJob,
			Timeout:   5 * time.Second, // also limits a push to a killed server
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

// A child is a service in a separate process, which a test can kill. Its metric log and the positions of its readers
// are kept for the next process.
type child struct {
	dir, addr string
	push      string
	env       []string
	process   *exec.Cmd
}

// start starts a process, and waits until the process serves.
func (c *child) start(t *testing.T) {
	t.Helper()
	c.process = command(t, os.Args[0])
	c.process.Env = append(os.Environ(), childDir+"="+c.dir, childAddress+"="+c.addr, childPush+"="+c.push)
	c.process.Env = append(c.process.Env, c.env...)
	c.process.Stderr = os.Stderr
	startReady(t, c.process, listens(c.addr))
}

// end lets the process finish its current work, and waits.
func (c *child) end(t *testing.T) {
	t.Helper()
	begin := time.Now()
	if err := errors.Join(c.process.Process.Signal(syscall.SIGTERM), c.process.Wait()); err != nil {
		t.Errorf("the service does not end well: %v", err)
	}
	t.Logf("the service has ended after %v", time.Since(begin).Round(time.Millisecond))
}

// kill kills the process before it can write anything, and waits for its end.
func (c *child) kill() {
	_ = c.process.Process.Signal(syscall.SIGKILL)
	_ = c.process.Wait() // the error reports the kill
}
