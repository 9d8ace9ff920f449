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
	file, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a second lock: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(path)
	if err != nil {
		t.Fatalf("after the end of the first: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(filepath.Join(path, "below a file")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a path that cannot be: %v", err)
	}
}

// A program that is being started has all files of this process for a moment, and so the locked one. The lock ends all the same.
func TestLockEndsThoughTheFileIsOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	file, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(child) }()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// Without locks the file is open, and nobody is kept away.
func TestFileSystemWithoutLocks(t *testing.T) {
	defer func() { flock = unix.Flock }()
	for _, errno := range []error{unix.ENOLCK, unix.EOPNOTSUPP, unix.ENOSYS} {
		flock = func(int, int) error { return errno }
		file, err := Lock(filepath.Join(t.TempDir(), "lock"))
		if err != nil {
			t.Fatalf("%v: %v", errno, err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	flock = func(int, int) error { return unix.EIO }
	if _, err := Lock(filepath.Join(t.TempDir(), "lock")); !errors.Is(err, unix.EIO) {
		t.Errorf("a disk that fails: %v", err)
	}
}
