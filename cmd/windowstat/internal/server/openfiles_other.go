//go:build !unix

package server

import "math"

// OpenFiles is how many files the process may have open: as many as there is memory for.
func OpenFiles() int { return math.MaxInt32 }
