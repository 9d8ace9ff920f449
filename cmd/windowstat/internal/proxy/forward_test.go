package proxy

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
	"github.com/windowstat/windowstat/internal/netlimit"
)

// Behind a trusted proxy, names are earned by the clients that it reports. A proxy that reports none has no share.
func TestClientsBehindProxies(t *testing.T) {
	o := Options{
		Bounds: server.Bounds{Bounds: netlimit.Bounds{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}},
	}
	for _, tc := range []struct{ remote, forwarded, want string }{
		{"192.0.2.1:80", "192.0.2.9", "192.0.2.1"},
		{"10.0.0.1:80", "198.51.100.1, 192.0.2.9", "192.0.2.9"},
		{"10.0.0.1:80", "2001:db8::7", "2001:db8::/64"},
		{"10.0.0.1:80", "", ""},
		{"10.0.0.1:80", "nobody", ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tc.remote
		r.Header.Set("X-Forwarded-For", tc.forwarded)
		if got := o.client(r); got != tc.want {
			t.Errorf("%s for %q is %q, want %q", tc.remote, tc.forwarded, got, tc.want)
		}
	}
}
