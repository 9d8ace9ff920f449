//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

// Package filelock keeps two processes from the same files.
package filelock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld is the error for a file that is locked already, by another process or by this one.
var ErrHeld = errors.New("the file is locked")

// File is a locked file.
type File struct{ *os.File }

// Close ends the lock and closes the file. The lock would end with the file only once no process has it open; a program that was being
// started at this moment has, until it runs.
func (f *File) Close() error {
	_ = flock(int(f.Fd()), unix.LOCK_UN) // or it ends with the file
	return f.File.Close()
}

// Lock makes and locks the file for this process, until it is closed. If it is locked already, the error is ErrHeld. On file
// systems without locks, such as NFS without its lock service, nobody is kept away.
func Lock(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if unsupported(err) {
		err = nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%s: %w", path, ErrHeld)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &File{file}, nil
}

// unsupported reports whether the file system has no locks.
func unsupported(err error) bool {
	return errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}

// flock is replaced in tests.
var flock = unix.Flock
