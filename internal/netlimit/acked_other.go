//go:build !linux

package netlimit

import "net"

func unacknowledged(net.Conn) (bytes int, known bool) { return 0, false }
