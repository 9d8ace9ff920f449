//go:build !linux

package netlimit

import "net"

// Unacknowledged returns the number of bytes that were written to a TCP connection and that the peer's machine has not
// acknowledged. They are not known on this system.
func Unacknowledged(net.Conn) (bytes int, known bool) { return 0, false }

// PeerClosed reports whether the peer has closed or reset a TCP connection. That is not known on this system.
func PeerClosed(net.Conn) (closed bool) { return false }
