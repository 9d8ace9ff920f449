//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	file, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("second lock: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(path)
	if err != nil {
		t.Fatalf("lock after the end of the first process: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(filepath.Join(path, "below a file")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a path below a file: %v", err)
	}
}

// Close releases the lock even if a program that is being started shares the open file.
func TestCloseUnlocksSharedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	file, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	var want, got unix.Stat_t
	if err := unix.Stat(path, &want); err != nil {
		t.Fatal(err)
	}
	child := -1
	for fd := 3; fd < 1000 && child < 0; fd++ { // find the descriptor of the file, which Lock does not return
		if unix.Fstat(fd, &got) == nil && got.Dev == want.Dev && got.Ino == want.Ino {
			if child, err = unix.Dup(fd); err != nil {
				t.Fatal(err)
			}
		}
	}
	if child < 0 {
		t.Fatal("the locked file is not open")
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

// InPlace reports a lock file that was deleted or replaced.
func TestInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	file, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if !file.InPlace() {
		t.Error("the locked file is not in place")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if file.InPlace() {
		t.Error("the deleted file is in place")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if file.InPlace() {
		t.Error("the replaced file is in place")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// On a file system without locks, Lock succeeds.
func TestFileSystemWithoutLocks(t *testing.T) {
	defer func() { tryLock = (*flock.Flock).TryLock }()
	for _, errno := range []error{unix.ENOLCK, unix.EOPNOTSUPP, unix.ENOSYS} {
		tryLock = func(f *flock.Flock) (bool, error) {
			_, err := f.TryLock() // creates the file
			return false, errors.Join(errno, err, f.Close())
		}
		file, err := Lock(filepath.Join(t.TempDir(), "lock"))
		if err != nil {
			t.Fatalf("%v: %v", errno, err)
		}
		if !file.InPlace() {
			t.Errorf("%v: the file is not in place", errno)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tryLock = func(*flock.Flock) (bool, error) { return false, unix.EIO }
	if _, err := Lock(filepath.Join(t.TempDir(), "lock")); !errors.Is(err, unix.EIO) {
		t.Errorf("a failing disk: %v", err)
	}
}
