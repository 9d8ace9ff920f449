package prom

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unsent reports whether the client's machine has not acknowledged everything that was written to a TCP connection.
func unsent(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	if raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }) != nil || err != nil {
		return false
	}
	return n > 0
}
