//go:build unix

package replay

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A named pipe is not a growing file. Its lines are read when they arrive.
func TestFollowANamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	go func() {
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(w, now()+now())
		_ = w.Close()
	}()
	if got := begin(t, path, time.Time{}).follow(); got != 2 {
		t.Errorf("%d lines, want 2", got)
	}
}
