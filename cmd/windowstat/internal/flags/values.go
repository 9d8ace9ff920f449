package flags

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/prometheus/common/config"
	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/collector"
)

// parsed is what came of the texts that were given to a flag.
type parsed struct {
	text string // the last one
	errs []error
}

// value is the [cli.Value] of a flag whose text is parsed. It keeps errors for [Set.Check], which reports all mistakes at once.
type value struct {
	parsed
	set func(string) error
}

func (v *value) Set(text string) error {
	v.text = text
	if err := v.set(text); err != nil {
		v.errs = append(v.errs, err)
	}
	return nil
}

func (v *value) String() string { return v.text }
func (v *value) Get() any       { return v.parsed }

// Value is the value of a [cli.GenericFlag] whose text is parsed. The default may be empty, for none.
func Value[T any](to *T, text string, parse func(string) (T, error)) cli.Value {
	// The option keeps its value when a text is wrong, so that checks of other options find nothing that nobody gave.
	v := &value{set: func(text string) (err error) {
		x, err := parse(text)
		if err == nil {
			*to = x
		}
		return err
	}}
	if text != "" {
		_ = v.Set(text)
	}
	return v
}

// OneOf is the value of a [cli.GenericFlag] that is one of some words.
func OneOf(to *string, text string, allowed ...string) cli.Value {
	return Value(to, text, func(s string) (string, error) {
		if !slices.Contains(allowed, s) {
			return s, fmt.Errorf("%q is not one of %s", s, strings.Join(allowed, ", "))
		}
		return s, nil
	})
}

// Values is the value of a [cli.GenericFlag] that is repeatable, and whose texts are parsed.
func Values[T any](to *[]T, parse func(string) (T, error)) cli.Value {
	return &value{set: func(texts string) error {
		var errs []error
		for text := range strings.SplitSeq(texts, Separator) {
			x, err := parse(text)
			if err == nil {
				*to = append(*to, x)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}}
}

// ParseNetwork reads an address or a network.
func ParseNetwork(s string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(s)
	if address, is := netip.ParseAddr(s); is == nil && address.Zone() == "" {
		network, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	if err != nil {
		return network, fmt.Errorf("%q is not an address or a network, such as 10.0.0.7 or 10.0.0.0/8", s)
	}
	return network.Masked(), nil
}

// ParseAddress checks an address to listen on, host:port, without listening.
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

// ClientUsage is the usage of a flag that [ParseClient] reads.
const ClientUsage = "`FILE` with authorization, TLS and headers, in Prometheus's HTTP client configuration format"

// ParseClient makes the client of a file in Prometheus's HTTP client configuration format.
func ParseClient(path string) (*http.Client, error) {
	options, _, err := config.LoadHTTPConfigFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	client, err := config.NewClientFromConfig(*options, "windowstat", config.WithUserAgent("windowstat/"+collector.Version()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return client, nil
}
