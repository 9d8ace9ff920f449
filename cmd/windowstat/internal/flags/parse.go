package flags

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/prometheus/common/config"

	"github.com/windowstat/windowstat/collector"
)

// ParseNetwork parses an IP address or a network in CIDR notation. An address is a network that contains only itself.
func ParseNetwork(s string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(s)
	// An IPv6 zone, as in fe80::1%eth0, has a meaning only on one host, and a Prefix cannot have one.
	if address, addrErr := netip.ParseAddr(s); addrErr == nil && address.Zone() == "" {
		network, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	if err != nil {
		return network, fmt.Errorf("%q is not an address or a network, such as 10.0.0.7 or 10.0.0.0/8", s)
	}
	// 10.0.0.7/8 is accepted and means 10.0.0.0/8.
	return network.Masked(), nil
}

// ParseAddress checks an address to listen on, host:port. It does not listen, so the port may be in use. The host may
// be empty, for all interfaces.
func ParseAddress(s string) (string, error) {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", fmt.Errorf("%q is not host:port", s)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return "", fmt.Errorf("%q: port %q is not a number from 0 to 65535", s, port)
	}
	return s, nil
}

// ClientUsage is the usage of all flags with [ParseClient].
const ClientUsage = "`FILE` with authorization, TLS and headers, in Prometheus's HTTP client configuration format"

// ParseClient returns an HTTP client with the options of a file in Prometheus's HTTP client configuration format:
// authorization, TLS and headers.
func ParseClient(path string) (*http.Client, error) {
	options, _, err := config.LoadHTTPConfigFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// Receivers can identify windowstat in their logs by this name.
	agent := config.WithUserAgent("windowstat/" + collector.Version())
	client, err := config.NewClientFromConfig(*options, "windowstat", agent)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return client, nil
}
