//go:build unix

package smallfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A FIFO without a writer, a device and a file of the kernel whose size is unknown are refused, without waiting.
func TestSpecialFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	fifo, zero := filepath.Join(dir, "fifo"), filepath.Join(dir, "zero")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("/dev/zero", zero); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, zero, "/dev/null"} {
		if b, err := Read(path, maxSize); b != nil || err == nil ||
			!strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %d bytes, %v", path, len(b), err)
		}
	}
	const endless = "/proc/self/smaps" // a regular file of size 0
	if _, err := os.Stat(endless); err != nil {
		t.Skip(err)
	}
	if b, err := Read(endless, 10); b != nil || err == nil || !strings.Contains(err.Error(), "longer than 10 bytes") {
		t.Errorf("%s: %d bytes, %v", endless, len(b), err)
	}
}

// A file that is replaced by a FIFO after the first check is refused, too: the open does not wait for a writer.
func TestOpenDoesNotWait(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	f, err := os.OpenFile(fifo, os.O_RDONLY|nonblock, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // nothing is written
	var info fs.FileInfo
	if info, err = f.Stat(); err != nil || check(fifo, info, maxSize) == nil {
		t.Errorf("%v: the FIFO is accepted", err)
	}
}
