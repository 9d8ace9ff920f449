// Package filelock locks files against other processes: with flock on Unix and with LockFileEx on Windows.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// ErrHeld is the error for a file that is already locked, by another process or by this one.
var ErrHeld = errors.New("the file is locked")

// File is a locked file.
type File struct{ lock *flock.Flock }

// Lock creates and locks the file at path until Close. If it is already locked, the error is ErrHeld. On a file system
// without locks, such as NFS without its lock service, Lock succeeds and excludes no other process.
func Lock(path string) (*File, error) {
	f := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
	locked, err := tryLock(f)
	switch {
	case unsupported(err):
	case err != nil:
		return nil, err
	case !locked:
		return nil, fmt.Errorf("%s: %w", path, ErrHeld)
	}
	return &File{f}, nil
}

// InPlace reports whether the locked file still exists under its path, where other processes look for the lock.
func (f *File) InPlace() bool {
	locked, err := f.lock.Stat()
	if err != nil {
		return false
	}
	at, err := os.Stat(f.lock.Path())
	return err == nil && os.SameFile(locked, at)
}

// Close releases the lock and closes the file. It releases the lock explicitly: otherwise the lock would last until
// every process has closed the file, and a program that is being started shares the open file until its exec.
func (f *File) Close() error { return f.lock.Close() }

// unsupported reports whether the file system has no locks.
func unsupported(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS)
}

// tryLock is replaced in tests.
var tryLock = (*flock.Flock).TryLock
