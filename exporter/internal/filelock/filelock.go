// Package filelock keeps two processes from the same files.
package filelock

import "errors"

// ErrHeld is the error for a file that is locked already, by another process or by this one.
var ErrHeld = errors.New("the file is locked")
