package netlimit

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// evicted returns a listener, and a list of the hosts whose connections it evicts.
func evicted(b Bounds) (net.Listener, *[]string) {
	var out []string
	b.OnEvict = func(h netip.Prefix) { out = append(out, h.String()) }
	return Listen(newDials(), b), &out
}

func closed(c net.Conn) bool {
	return c.SetReadDeadline(time.Time{}) != nil
}

func TestFloodEvictsOnlyItself(t *testing.T) {
	l, out := evicted(Bounds{Conns: 10})
	honest := []*conn{accept(t, l, "192.0.2.1"), accept(t, l, "192.0.2.2"), accept(t, l, "192.0.2.2")}
	for range 1000 {
		accept(t, l, "198.51.100.9")
	}
	late := accept(t, l, "192.0.2.3")
	for i, c := range append(honest, late) {
		if closed(c) {
			t.Errorf("honest client %d was evicted", i)
		}
	}
	if n := l.(*listener).open.Len(); n != 10 {
		t.Errorf("%d open connections, want 10", n)
	}
	if len(*out) != 1000-7+1 || slices.ContainsFunc(*out, func(h string) bool { return h != "198.51.100.9/32" }) {
		t.Errorf("evictions of %d connections, or of other hosts", len(*out))
	}
}

func TestLongestIdleConnectionOfHostIsEvicted(t *testing.T) {
	l, _ := evicted(Bounds{ConnsPerHost: 3})
	a, b, c := accept(t, l, "192.0.2.1"), accept(t, l, "192.0.2.1"), accept(t, l, "192.0.2.1")
	a.move()
	c.move()
	other := accept(t, l, "192.0.2.2")
	d := accept(t, l, "192.0.2.1")
	if closed(a) || !closed(b) || closed(c) || closed(d) || closed(other) {
		t.Error("wrong connection evicted")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if n := l.(*listener).open.Len(); n != 3 {
		t.Errorf("%d open connections, want 3", n)
	}
	if e := accept(t, l, "192.0.2.1"); closed(c) || closed(d) || closed(e) {
		t.Error("a connection was evicted although one was closed")
	}
}

func TestAddressesOfOneNetworkAreOneHost(t *testing.T) {
	l, out := evicted(Bounds{ConnsPerHost: 1})
	for _, from := range []string{"2001:db8::1", "2001:db8:0:1::1", "192.0.2.1", "192.0.2.2", "fe80::1%eth0"} {
		accept(t, l, from)
	}
	if len(*out) != 0 {
		t.Errorf("evicted %v, but the hosts are different", *out)
	}
	for _, from := range []string{"2001:db8::ffff:2", "::ffff:192.0.2.1", "fe80::2%eth0"} {
		accept(t, l, from)
	}
	if fmt.Sprint(*out) != "[2001:db8::/64 192.0.2.1/32 fe80::/64]" {
		t.Errorf("evicted %v", *out)
	}
}

// A proxy has the most connections because it has the most clients, so it is evicted last.
func TestProxyIsEvictedLast(t *testing.T) {
	l, out := evicted(Bounds{Conns: 6, ConnsPerHost: 2, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for range 5 {
		accept(t, l, "10.0.0.7")
	}
	for range 3 {
		accept(t, l, "198.51.100.9")
	}
	if fmt.Sprint(*out) != "[198.51.100.9/32 198.51.100.9/32]" {
		t.Errorf("evicted %v", *out)
	}
	for range 3 {
		accept(t, l, "10.0.0.7")
	}
	if fmt.Sprint((*out)[2:]) != "[198.51.100.9/32 10.0.0.7/32 10.0.0.7/32]" {
		t.Errorf("evicted %v", *out)
	}
}
