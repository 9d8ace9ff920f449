//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package filelock

import "os"

// Lock makes the file. It does not lock: this system has no flock.
func Lock(path string) (file *os.File, sure bool, err error) {
	file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	return file, err == nil, err
}
