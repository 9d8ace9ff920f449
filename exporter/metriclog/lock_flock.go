//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package metriclog

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile makes and locks the file for this process, until it is closed. If another process has it, the error is errLocked. On
// file systems without locks, such as NFS without its lock service, sure is false: nobody is kept away.
func lockFile(path string) (file *os.File, sure bool, err error) {
	file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, false, err
	}
	err = flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return file, false, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%s: %w", path, errLocked)
	}
	if err != nil {
		return nil, false, errors.Join(err, file.Close())
	}
	return file, true, nil
}

// flock is replaced in tests.
var flock = unix.Flock
