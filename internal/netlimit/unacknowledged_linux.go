package netlimit

import (
	"crypto/tls"
	"net"
	"syscall"
	"unsafe"
)

// Unacknowledged returns the number of bytes that were written to a TCP connection, or to TLS on top of one, and not
// yet acknowledged by the peer's machine. The number is unknown for a closed connection, for a connection that hides
// its socket, and on systems other than Linux.
func Unacknowledged(c net.Conn) (bytes int, known bool) {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
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
