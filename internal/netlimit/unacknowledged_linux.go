package netlimit

import (
	"crypto/tls"
	"net"
	"syscall"
	"unsafe"
)

// Unacknowledged returns how many bytes were written to a TCP connection, which TLS may be on top of, and not acknowledged by
// the peer's machine. It is not known of a closed connection, of one that hides its socket, and on other systems than Linux.
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
