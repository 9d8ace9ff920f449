//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SIGTERM ends a process soon, at any time. The status is 0 for a command that serves, and 1 for an interrupted
// command.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and does not respond
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	dir, log := t.TempDir(), aLog(t)
	grows := filepath.Join(dir, "access.log")
	if err := os.WriteFile(grows, []byte(accessLine(time.Now(), "/a", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(dir, "nowhere")
	for name, tc := range map[string]struct {
		status int
		args   []string
	}{
		"demo": {0, []string{"demo", anyPort, "--rate=100"}},
		"proxy": {0, []string{
			"proxy", anyPort, "--proxy.listen-address=127.0.0.1:0",
			"--upstream=http://" + silent.Addr().String(),
		}},
		"replay --follow": {0, []string{
			"replay", "--follow", anyPort,
			"--metric-log.dir=" + filepath.Join(dir, "log"), grows,
		}},
		"log --follow":            {0, []string{"log", "--follow", "--dir=" + log}},
		"log --follow, no log":    {0, []string{"log", "--follow", "--dir=" + nowhere}},
		"replay of a silent pipe": {1, []string{"replay", "-"}},
		"top --once":              {1, []string{"top", "--once", silent.Addr().String()}},
		"verify": {1, []string{
			"verify", "--dir=" + log, "--app=shop", "--from=2026-01-02",
			"--to=2026-01-02", "--url=http://" + silent.Addr().String(), "--label=job=a", "--label=instance=b",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, after := range []time.Duration{
				time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond,
				time.Second,
			} {
				c := exec.Command(os.Args[0], tc.args...)
				c.Env = append(os.Environ(), asCommand+"=1")
				var stderr bytes.Buffer
				c.Stderr = &stderr
				stdin, err := c.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				stdout, err := c.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				out := bufio.NewReader(stdout)
				if line, err := out.ReadString('\n'); line != "started\n" {
					t.Fatalf("%q, %v", line, err)
				}
				time.Sleep(after)
				if err := c.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				hangs := time.AfterFunc(maxWait, func() { _ = c.Process.Kill() })
				_, _ = out.WriteTo(io.Discard)
				err = c.Wait()
				stdin.Close()
				if !hangs.Stop() {
					t.Fatalf("%v after its start it does not end:\n%s", after, &stderr)
				}
				var exit *exec.ExitError
				if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM &&
					stderr.Len() == 0 {
					continue // it was not running yet
				}
				if status := c.ProcessState.ExitCode(); status != tc.status ||
					(status == 1) != strings.Contains(stderr.String(), "interrupted") {
					t.Errorf("%v after its start: status %d, want %d:\n%s", after, status, tc.status, &stderr)
				}
			}
		})
	}
}
