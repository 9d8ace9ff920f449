// Package clientip tells which host a request comes from, where hosts have shares or bounds.
package clientip

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Of returns the host of a request's client, see [OfAddress]. A proxy in the networks given is believed whom it asks for, by
// X-Forwarded-For; without that header it is one host.
func Of(r *http.Request, proxies []netip.Prefix) string {
	from := parse(r.RemoteAddr) // none of a Unix socket
	chain := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(chain) - 1; i >= 0 && has(proxies, from); i-- { // each proxy adds whom it saw
		before := parse(strings.TrimSpace(chain[i]))
		if !before.IsValid() {
			break
		}
		from = before
	}
	return name(from, r.RemoteAddr)
}

// OfAddress returns the host of an address, which may have a port: the address, or of IPv6 the network of 64 bits, which who has
// one address of it has as a whole. What is no address is itself.
func OfAddress(address string) string {
	if !strings.Contains(address, ":") { // one of IPv4, which has one spelling, or none
		return address
	}
	return name(parse(address), address)
}

// name is the host of an address as text, other for none.
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

// parse reads an address with or without a port; the zero Addr is none.
func parse(s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil {
		ap, _ := netip.ParseAddrPort(s)
		a = ap.Addr()
	}
	return a.Unmap().WithZone("")
}

// Network returns the host of an address: its 32 bits of IPv4, or 64 of IPv6, which one customer gets; the zero Prefix for no
// address.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	host, _ := a.Prefix(min(a.BitLen(), 64))
	return host
}
