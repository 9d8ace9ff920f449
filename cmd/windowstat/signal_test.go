package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A command that serves until the signal to end returns status 0, even if the signal arrives while the command starts.
func TestSignalDuringTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	grows := filepath.Join(dir, "access.log")
	if err := os.WriteFile(grows, []byte(accessLine(time.Now(), "/a", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.log") // the command waits for a line to detect the format
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"replay":          {"replay", "--follow", anyPort, grows},
		"replay, no line": {"replay", "--follow", anyPort, empty},
		"replay, with a log": {
			"replay", "--follow", anyPort, "--metric-log.dir", filepath.Join(dir, "replayed"),
			grows,
		},
		"demo":              {"demo", anyPort, "--rate=100"},
		"demo, for a while": {"demo", anyPort, "--rate=100", "--duration=1h"},
		"proxy":             {"proxy", anyPort, "--proxy.listen-address=127.0.0.1:0", "--upstream=http://127.0.0.1:1"},
		"proxy, with a log": {
			"proxy", anyPort, "--proxy.listen-address=127.0.0.1:0", "--upstream=http://127.0.0.1:1",
			"--metric-log.dir", filepath.Join(dir, "proxied"),
		},
		"otlp": {
			"otlp", anyPort, "--spans.http-listen-address=127.0.0.1:0",
			"--spans.grpc-listen-address=127.0.0.1:0", "--metric-log.dir", filepath.Join(dir, "received"),
		},
		"log": {"log", "--follow", "--dir", dir},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, after := range []time.Duration{0, 3 * time.Millisecond, 30 * time.Millisecond} {
				ctx, cancel := context.WithCancel(t.Context())
				if after == 0 {
					cancel()
				}
				p := &process{cancel: cancel, status: make(chan int, 1)}
				go func() { p.status <- run(ctx, append([]string{"windowstat"}, args...), p, p) }()
				time.Sleep(after)
				if status := p.end(t); status != 0 {
					t.Errorf("signal after %v: status %d:\n%s", after, status, p.output())
				}
			}
		})
	}
}
