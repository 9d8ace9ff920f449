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

// Lock makes and locks the file for this process, until it is closed. If it is locked already, the error is ErrHeld. On file
// systems without locks, such as NFS without its lock service, nobody is kept away.
func Lock(path string) (file *os.File, err error) {
	file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return file, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%s: %w", path, ErrHeld)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// flock is replaced in tests.
var flock = unix.Flock
