//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
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
