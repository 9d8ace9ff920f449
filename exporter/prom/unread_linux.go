package prom

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unread reports whether some of what was written to a connection has not arrived at the client's machine.
func unread(c net.Conn) bool {
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
