package netlimit

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
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
	var n uint32
	var failed error
	err = raw.Control(func(fd uintptr) { n, failed = unix.IoctlGetUint32(int(fd), unix.TIOCOUTQ) })
	return int(n), err == nil && failed == nil
}
