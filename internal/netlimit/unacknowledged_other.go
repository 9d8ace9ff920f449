//go:build !linux

package netlimit

import "net"

// Unacknowledged returns the number of bytes that were written to a TCP connection and not yet acknowledged by the
// peer's machine. It is unknown on this system.
func Unacknowledged(net.Conn) (bytes int, known bool) { return 0, false }

// PeerClosed reports whether the peer has closed or reset a TCP connection. That is not known on this system.
func PeerClosed(net.Conn) (closed bool) { return false }
