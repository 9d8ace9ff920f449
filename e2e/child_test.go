package e2e

import (
	"context"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// What tells the test's executable that it is a service, and where.
const (
	childDir     = "WINDOWSTAT_E2E_DIR"
	childAddress = "WINDOWSTAT_E2E_ADDRESS"
)

// runChild is a service under load until it is killed.
func runChild(dir, addr string) error {
	s, err := newService(dir)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	failed := make(chan error, 3)
	go func() { failed <- http.Serve(s.seconds.Watch(l), s.pages) }()
	go func() { failed <- s.log.Run(context.Background()) }()
	go func() { failed <- s.load(context.Background(), math.MaxInt32) }()
	return <-failed
}

// A child is a service that is a process of its own, so that it can be killed. It leaves its metric log and the positions
// of its readers to the next one.
type child struct {
	dir, addr string
	process   *exec.Cmd
}

// start starts a process, and waits until it serves.
func (c *child) start(t *testing.T) {
	t.Helper()
	c.process = command(t, os.Args[0])
	c.process.Env = append(os.Environ(), childDir+"="+c.dir, childAddress+"="+c.addr)
	c.process.Stderr = os.Stderr
	begin := time.Now()
	if err := c.process.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		connection, err := net.Dial("tcp", c.addr)
		if err == nil {
			_ = connection.Close()
			t.Logf("the service is ready after %v", time.Since(begin).Round(time.Millisecond))
			return
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("the service does not get ready: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// kill gives the process no chance to write anything, and waits until it is gone.
func (c *child) kill() {
	_ = c.process.Process.Signal(syscall.SIGKILL)
	_ = c.process.Wait() // it says that it was killed
}
