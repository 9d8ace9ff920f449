package netlimit

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"syscall"
	"unsafe"
)

// Unacknowledged returns the number of bytes that were written to a TCP connection, or to TLS on top of one, and not
// yet acknowledged by the peer's machine. The number is unknown for a closed connection, for a connection that hides
// its socket, and on systems other than Linux.
func Unacknowledged(c net.Conn) (bytes int, known bool) {
	var n int32
	known = control(c, func(fd uintptr) bool {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&n)))
		return errno == 0
	})
	return int(n), known
}

// PeerClosed reports whether the peer has closed or reset a TCP connection, with or without TLS on top. The kernel
// receives the end before a goroutine that reads the connection is scheduled. PeerClosed reports false wherever
// [Unacknowledged] does not know the number.
func PeerClosed(c net.Conn) (closed bool) {
	control(c, func(fd uintptr) bool {
		info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
		const established = 1 // in the first byte of the kernel's struct tcp_info
		closed = err == nil && binary.NativeEndian.AppendUint32(nil, uint32(info))[0] != established
		return err == nil
	})
	return closed
}

// control calls f with the socket of a connection, and reports whether that succeeded.
func control(c net.Conn, f func(fd uintptr) bool) (ok bool) {
	if over, isTLS := c.(*tls.Conn); isTLS {
		c = over.NetConn()
	}
	s, isSocket := c.(syscall.Conn)
	if !isSocket {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) { ok = f(fd) })
	return ok && err == nil
}
