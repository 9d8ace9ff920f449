//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package metriclog

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile makes the file and holds it for this process, until it is closed. The error says who holds it.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%s: %w", path, errLocked)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
