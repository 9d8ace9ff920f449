//go:build unix

package server

import (
	"math"
	"syscall"
)

// OpenFiles is how many files the process may have open.
func OpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
