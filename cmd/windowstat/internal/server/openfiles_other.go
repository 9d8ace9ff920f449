//go:build !unix

package server

import "math"

// OpenFiles returns the maximum number of open files of the process. Only memory limits it here.
func OpenFiles() int { return math.MaxInt32 }
