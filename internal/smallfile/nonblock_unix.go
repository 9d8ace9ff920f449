//go:build unix

package smallfile

import "syscall"

// nonblock makes the open of a FIFO return immediately.
const nonblock = syscall.O_NONBLOCK
