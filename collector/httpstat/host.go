package httpstat

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// ClientHost is the host that an address such as RemoteAddr stands for: an IPv4 address, the /64 of an IPv6 address, which is
// what one customer has, or whatever else is there, without a port.
func ClientHost(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	ip, err := netip.ParseAddr(strings.Trim(address, "[]"))
	if err != nil {
		return address
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	prefix, _ := ip.WithZone("").Prefix(64)
	return prefix.String()
}

// host is the host that sends a request.
func (n *Names) host(r *http.Request) string {
	if n.opts.Host != nil {
		return ClientHost(n.opts.Host(r))
	}
	return ClientHost(r.RemoteAddr)
}
