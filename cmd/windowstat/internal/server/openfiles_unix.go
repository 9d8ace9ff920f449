//go:build unix

package server

import (
	"math"
	"syscall"
)

// OpenFiles returns the maximum number of open files of the process.
func OpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		// The limit is unknown. Assume the usual soft limit of Linux, because most systems allow more.
		return 1024
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
