//go:build unix

package main

import (
	"math"
	"syscall"
)

// openFiles is how many files the process may have open.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
