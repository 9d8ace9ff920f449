package clientip

import (
	"net/http/httptest"
	"net/netip"
	"testing"
)

// All addresses of a client belong to the same host, for any header that the client sends.
func TestHosts(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tc := range []struct{ remote, forwarded, want string }{
		{"192.0.2.7:1234", "", "192.0.2.7"},
		{"[::ffff:192.0.2.7]:1234", "", "192.0.2.7"},
		{"[2001:db8:0:1::7]:1234", "", "2001:db8:0:1::/64"},
		{"[2001:db8:0:1:ffff::8]:1234", "", "2001:db8:0:1::/64"},
		{"[fe80::1%eth0]:1234", "", "fe80::/64"},
		{"@", "", "@"}, // a Unix socket
		{"192.0.2.7:1234", "192.0.2.8", "192.0.2.7"},
		{"10.0.0.1:1234", "", "10.0.0.1"},
		{"10.0.0.1:1234", "192.0.2.8", "192.0.2.8"},
		{"10.0.0.1:1234", "198.51.100.1, 192.0.2.8", "192.0.2.8"}, // the client itself sent the first address
		{"10.0.0.1:1234", "198.51.100.1, 192.0.2.8, 10.0.0.2", "192.0.2.8"},
		{"10.0.0.1:1234", "[2001:db8::1]:99", "2001:db8::/64"},
		{"10.0.0.1:1234", "unknown", "10.0.0.1"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tc.remote
		if tc.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tc.forwarded)
		}
		if got := Of(r, proxies); got != tc.want {
			t.Errorf("host of %s for %q is %s, want %s", tc.remote, tc.forwarded, got, tc.want)
		}
	}
	if got := OfAddress("2001:db8:0:1::7"); got != "2001:db8:0:1::/64" {
		t.Error(got)
	}
}
