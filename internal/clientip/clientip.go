// Package clientip returns the host of a request's client, the unit by which shares and bounds are counted.
package clientip

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Of returns the host of a request's client; see [OfAddress]. If the request comes from one of the networks of proxies,
// Of takes the client from X-Forwarded-For. Requests of a proxy without that header count for the proxy.
func Of(r *http.Request, proxies []netip.Prefix) string {
	from := parse(r.RemoteAddr) // not valid for a Unix socket
	chain := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(chain) - 1; i >= 0 && has(proxies, from); i-- { // each proxy appends its client
		before := parse(strings.TrimSpace(chain[i]))
		if !before.IsValid() {
			break
		}
		from = before
	}
	return name(from, r.RemoteAddr)
}

// OfAddress returns the host of an address with or without a port: the IPv4 address, or the /64 network of an IPv6
// address, because a customer usually gets all of it. Text that is not an address is returned unchanged.
func OfAddress(address string) string {
	if !strings.Contains(address, ":") { // an IPv4 address, which has one spelling, or not an address
		return address
	}
	return name(parse(address), address)
}

// name returns the host of a as text, or other if a is not valid.
func name(a netip.Addr, other string) string {
	switch {
	case a.Is6():
		return Network(a).String()
	case a.Is4():
		return a.String()
	}
	return other
}

// In reports whether an address, which may have a port, is in one of the networks.
func In(networks []netip.Prefix, address string) bool { return has(networks, parse(address)) }

func has(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// parse parses an address with or without a port. It returns the zero Addr if s is not an address.
func parse(s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil {
		ap, _ := netip.ParseAddrPort(s)
		a = ap.Addr()
	}
	return a.Unmap().WithZone("")
}

// Network returns the host of an address as a prefix: 32 bits for IPv4, 64 bits for IPv6. It returns the zero Prefix
// for the zero Addr.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	host, _ := a.Prefix(min(a.BitLen(), 64))
	return host
}
