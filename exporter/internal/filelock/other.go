//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

// Package filelock keeps two processes from the same files.
package filelock

import (
	"errors"
	"os"
)

// ErrHeld is the error of systems that have locks.
var ErrHeld = errors.New("the file is locked")

// File is a file that would be locked.
type File struct{ *os.File }

// Lock makes the file. It does not lock: this system has no flock.
func Lock(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	return &File{file}, err
}
