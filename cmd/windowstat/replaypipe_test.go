//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An interrupt ends the command while it waits for a named pipe without a writer, or with an idle one.
func TestReplayOfASilentPipe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"replay"},
		{"replay", "--format=common"},
		{"replay", "--follow", "--format=common", anyPort},
	} {
		for _, written := range []string{"", accessLine(time.Now(), "/a", 200)} {
			path := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Skip(err)
			}
			if written != "" {
				w, err := os.OpenFile(path, os.O_RDWR, 0) // O_RDWR does not wait for a reader
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close() //nolint:errcheck // closing a pipe loses nothing
				if _, err := io.WriteString(w, written); err != nil {
					t.Fatal(err)
				}
			}
			p := launch(t, append(args, path)...)
			time.Sleep(200 * time.Millisecond) // usually enough to reach the wait; otherwise the test proves less
			p.end(t)
		}
	}
}

// A concatenated log in the wrong order is an error that names the log, even if few of all lines are late. Clocks too
// far apart are an error, too.
func TestReplayOfAPipeOutOfOrder(t *testing.T) {
	begin := time.Date(2020, 1, 2, 3, 0, 0, 0, time.UTC)
	var good, late strings.Builder
	for i := range 9000 {
		good.WriteString(accessLine(begin.Add(time.Duration(i)*time.Second), "/a", 200))
		if i%1000 == 0 {
			late.WriteString(
				accessLine(
					begin.Add(time.Duration(i)*time.Second),
					"/b",
					200,
				) + accessLine(begin.Add(time.Duration(i)*time.Second-time.Hour), "/b", 200),
			)
		}
	}
	path := filepath.Join(t.TempDir(), "good.log")
	if err := os.WriteFile(path, []byte(good.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := pipeOf(t, late.String())
	p := launch(t, "replay", path, pipe)
	if status := p.wait(t); status != 1 ||
		!strings.Contains(p.output(),
			"pipe: 8 of 18 lines are later than the tolerance; if the server buffers its log") ||
		!strings.Contains(p.output(), "8 late lines in "+pipe+" (of 18)") {
		t.Errorf("status %d:\n%s", status, p.output())
	}
	if p := launch(t, "replay", "--fail-above=0.5", path, pipeOf(t, late.String())); p.wait(t) != 0 {
		t.Errorf("%s", p.output())
	}
	var mixed strings.Builder
	for i := range 2000 {
		mixed.WriteString(
			accessLine(begin.Add(time.Duration(i)*time.Second+time.Duration(i%2)*24*time.Hour), "/a", 200),
		)
	}
	p = launch(t, "replay", pipeOf(t, mixed.String()))
	if status := p.wait(t); status != 1 || !strings.Contains(p.output(), "lines are not counted; --fail-above is 0.1") {
		t.Errorf("status %d:\n%s", status, p.output())
	}
}

// If more than a thousandth of the lines of a log are late, the command fails, also after --follow. Buffers of servers
// may cause fewer late lines.
func TestReplayOfALogWithFewLateLines(t *testing.T) {
	t.Parallel()
	const lines = 4000
	for late, want := range map[int]int{lines / 1000: 0, lines/1000 + 1: 1} {
		var log strings.Builder
		for i := range lines {
			at := time.Now()
			if i%700 == 699 && i/700 < late {
				at = at.Add(-time.Hour)
			}
			log.WriteString(accessLine(at, "/a", 200))
		}
		for _, args := range [][]string{{"replay"}, {"replay", "--follow", anyPort}} {
			pipe := pipeOf(t, log.String())
			p := launch(t, append(args, pipe)...)
			status := p.wait(t)
			message := fmt.Sprintf("%s: %d of %d lines are later than the tolerance", pipe, late, lines)
			if status != want || strings.Contains(p.output(), message) != (want != 0) ||
				!strings.Contains(p.output(), fmt.Sprintf("%d late lines in %s (of %d)", late, pipe, lines)) {
				t.Errorf("%s, %d late: status %d, want %d:\n%s", args, late, status, want, p.output())
			}
		}
	}
}

// pipeOf returns a named pipe with a text.
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
