package netlimit

import (
	"net"
	"syscall"
	"unsafe"
)

// unacknowledged is how many bytes were written to a TCP connection and not acknowledged by the peer's machine, if that is
// known.
func unacknowledged(c net.Conn) (bytes int, known bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, false
	}
	var n int32
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&n)))
	})
	return int(n), err == nil && errno == 0
}
