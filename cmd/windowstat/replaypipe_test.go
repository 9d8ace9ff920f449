//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A named pipe to which nobody writes, or nobody any more, ends with the command.
func TestReplayOfASilentPipe(t *testing.T) {
	for _, args := range [][]string{{"replay"}, {"replay", "--format=common"}, {"replay", "--follow", "--format=common", anyPort}} {
		for _, written := range []string{"", accessLine(time.Now(), "/a", 200)} {
			path := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Skip(err)
			}
			if written != "" {
				w, err := os.OpenFile(path, os.O_RDWR, 0) // which does not wait for a reader
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close() //nolint:errcheck // it is a pipe
				if _, err := io.WriteString(w, written); err != nil {
					t.Fatal(err)
				}
			}
			p := launch(t, append(args, path)...)
			time.Sleep(200 * time.Millisecond) // it waits for the pipe; if not yet, the test proves less
			p.end(t)
		}
	}
}

// What a pipe brings in the wrong order is counted, as it is of files, and lines that are late after all are a failure.
func TestReplayOfAPipeOutOfOrder(t *testing.T) {
	var older, newer strings.Builder
	begin := time.Date(2020, 1, 2, 3, 0, 0, 0, time.UTC)
	for i := range 2525 {
		older.WriteString(accessLine(begin.Add(time.Duration(i)*time.Second), "/a", 200))
	}
	for i := range 1000 {
		newer.WriteString(accessLine(begin.Add(2*time.Hour+time.Duration(i)*time.Second), "/a", 200))
	}
	p := launch(t, "replay", pipeOf(t, newer.String()+older.String()))
	if status := p.wait(t); status != 0 || !regexp.MustCompile(`(?m)^ +3525 with status 200$`).MatchString(p.output()) {
		t.Errorf("status %d:\n%s", status, p.output())
	}
	var mixed strings.Builder
	for i := range 2000 {
		mixed.WriteString(accessLine(begin.Add(time.Duration(i)*time.Second+time.Duration(i%2)*24*time.Hour), "/a", 200))
	}
	p = launch(t, "replay", pipeOf(t, mixed.String()))
	if status := p.wait(t); status != 1 || !strings.Contains(p.output(), "lines are not counted; --fail-above is 0.1") {
		t.Errorf("status %d:\n%s", status, p.output())
	}
}

// pipeOf is a named pipe that has a text.
func pipeOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	go func() {
		if err := os.WriteFile(path, []byte(text), 0); err != nil {
			t.Error(err)
		}
	}()
	return path
}
