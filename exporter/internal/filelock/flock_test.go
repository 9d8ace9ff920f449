//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	file, sure, err := Lock(path)
	if err != nil || !sure {
		t.Fatal(sure, err)
	}
	if _, _, err := Lock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a second lock: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	again, _, err := Lock(path)
	if err != nil {
		t.Fatalf("after the end of the first: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Lock(filepath.Join(path, "below a file")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a path that cannot be: %v", err)
	}
}

// Without locks the file is open, and the caller knows.
func TestFileSystemWithoutLocks(t *testing.T) {
	defer func() { flock = unix.Flock }()
	for _, errno := range []error{unix.ENOLCK, unix.EOPNOTSUPP, unix.ENOSYS} {
		flock = func(int, int) error { return errno }
		file, sure, err := Lock(filepath.Join(t.TempDir(), "lock"))
		if err != nil || sure {
			t.Fatalf("%v: %v, %v", errno, sure, err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	flock = func(int, int) error { return unix.EIO }
	if _, _, err := Lock(filepath.Join(t.TempDir(), "lock")); !errors.Is(err, unix.EIO) {
		t.Errorf("a disk that fails: %v", err)
	}
}
