package accesslog

import "bytes"

// clientAddress returns the address of a client without its port and brackets: 192.0.2.7 for 192.0.2.7:40512, and
// 2001:db8::7 for [2001:db8::7]:40512. It returns nil for a Unix socket, because all clients of a socket have the same
// name.
//
// port says whether the format has a port in this field. If so, the port follows the last colon, also in
// 2001:db8::7:40512: HAProxy and the load balancers of AWS write IPv6 addresses without brackets. If not, an address
// with several colons and without brackets is an IPv6 address that has no port.
func clientAddress(field []byte, port bool) []byte {
	first := bytes.IndexByte(field, ':')
	switch c := field[0]; {
	case c == '[':
		if end := bytes.IndexByte(field, ']'); end > 1 {
			return field[1:end]
		}
		return field
	case c == '/' || c == '@' || c == 'u' && bytes.HasPrefix(field, []byte("unix:")):
		return nil
	case first < 0:
		return field
	}
	last := bytes.LastIndexByte(field, ':')
	if last != first && !port || last == 0 || leadingDigits(field[last+1:]) != len(field)-last-1 {
		return field
	}
	return field[:last]
}

// hostName returns a host without its port. The caller must know from the format that the field has a port. Only an
// address in brackets contains colons itself.
func hostName(field []byte) []byte {
	if field[0] == '[' {
		return field[:bytes.IndexByte(field, ']')+1]
	}
	name, _, _ := bytes.Cut(field, []byte(":"))
	return name
}

// hasPort reports whether a field ends with the number of a port, like each host and client in a format with ports.
// Only the last colon of a client separates its port. The port of a host follows its only colon, so an IPv6 address is
// not mistaken for a host with a port.
func hasPort(of slot, field []byte) bool {
	i := bytes.LastIndexByte(field, ':')
	if i < 0 || i+1 == len(field) || leadingDigits(field[i+1:]) != len(field)-i-1 {
		return false
	}
	return of == client || len(hostName(field)) == i
}
