package netlimit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// evicted makes a listener, and says which hosts' connections it has closed.
func evicted(b Bounds) (net.Listener, *[]string) {
	var out []string
	b.OnEvict = func(h netip.Prefix) { out = append(out, h.String()) }
	return Listen(newDials(), b), &out
}

func closed(c net.Conn) bool {
	return c.SetReadDeadline(time.Time{}) != nil
}

func TestWhoFloodsAServerPushesOutNobodyElse(t *testing.T) {
	l, out := evicted(Bounds{Conns: 10})
	honest := []*conn{accept(t, l, "192.0.2.1"), accept(t, l, "192.0.2.2"), accept(t, l, "192.0.2.2")}
	for range 1000 {
		accept(t, l, "198.51.100.9")
	}
	late := accept(t, l, "192.0.2.3")
	for i, c := range append(honest, late) {
		if closed(c) {
			t.Errorf("honest client %d is out", i)
		}
	}
	if n := l.(*listener).places.n; n != 10 {
		t.Errorf("%d are open", n)
	}
	if len(*out) != 1000-7+1 || slices.ContainsFunc(*out, func(h string) bool { return h != "198.51.100.9/32" }) {
		t.Errorf("%d have made room", len(*out))
	}
}

func TestTheLongestIdleConnectionOfAHostMakesRoom(t *testing.T) {
	l, _ := evicted(Bounds{ConnsPerHost: 3})
	a, b, c := accept(t, l, "192.0.2.1"), accept(t, l, "192.0.2.1"), accept(t, l, "192.0.2.1")
	a.move()
	c.move()
	other := accept(t, l, "192.0.2.2")
	d := accept(t, l, "192.0.2.1")
	if closed(a) || !closed(b) || closed(c) || closed(d) || closed(other) {
		t.Error("another one is out")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if e := accept(t, l, "192.0.2.1"); closed(c) || closed(d) || closed(e) {
		t.Error("the place of one that was closed is taken")
	}
}

func TestTheAddressesOfOneNetworkAreOneHost(t *testing.T) {
	l, out := evicted(Bounds{ConnsPerHost: 1})
	for _, from := range []string{"2001:db8::1", "2001:db8:0:1::1", "192.0.2.1", "192.0.2.2", "fe80::1%eth0"} {
		accept(t, l, from)
	}
	if len(*out) != 0 {
		t.Errorf("%v are out, which are different hosts", *out)
	}
	for _, from := range []string{"2001:db8::ffff:2", "::ffff:192.0.2.1", "fe80::2%eth0"} {
		accept(t, l, from)
	}
	if fmt.Sprint(*out) != "[2001:db8::/64 192.0.2.1/32 fe80::/64]" {
		t.Errorf("%v are out", *out)
	}
}

// A proxy has most connections because it has most clients.
func TestAProxyGivesWayLast(t *testing.T) {
	l, out := evicted(Bounds{Conns: 6, ConnsPerHost: 2, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for range 5 {
		accept(t, l, "10.0.0.7")
	}
	for range 3 {
		accept(t, l, "198.51.100.9")
	}
	if fmt.Sprint(*out) != "[198.51.100.9/32 198.51.100.9/32]" {
		t.Errorf("%v are out", *out)
	}
	for range 3 {
		accept(t, l, "10.0.0.7")
	}
	if fmt.Sprint((*out)[2:]) != "[198.51.100.9/32 10.0.0.7/32 10.0.0.7/32]" {
		t.Errorf("%v are out", *out)
	}
}

// Whatever comes and goes, the bounds hold, and who is pushed out was the longest idle one of who had most.
func TestPlacesKeepToTheirBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	bounds := Bounds{Conns: 12, ConnsPerHost: 5}
	p := places{bounds: bounds, hosts: map[netip.Prefix]*host{}}
	open := map[*conn]bool{}
	per := func(h netip.Prefix) (n int) {
		for c := range open {
			if c.host == h {
				n++
			}
		}
		return n
	}
	server, _ := net.Pipe()
	for i := range 20_000 {
		if random.IntN(4) == 0 {
			for c := range open {
				p.leave(c)
				p.leave(c)
				delete(open, c)
				break
			}
			continue
		}
		for c := range open {
			if random.IntN(3) == 0 {
				c.moved.Store(int64(i) * 100)
			}
		}
		c := newConn(server, 0)
		c.moved.Store(int64(i)*100 + 1)
		c.host = netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(random.IntN(6))}), 32)
		own, most := per(c.host), 0
		for k := range open {
			most = max(most, per(k.host))
		}
		all := len(open)
		out := p.take(c)
		switch {
		case own == bounds.ConnsPerHost && (out == nil || out.host != c.host):
			t.Fatalf("a host has %d and none of its own is out", own)
		case own < bounds.ConnsPerHost && (all == bounds.Conns) != (out != nil):
			t.Fatalf("there were %d, and one is out: %t", all, out != nil)
		case own < bounds.ConnsPerHost && out != nil && per(out.host) != most:
			t.Fatalf("one of a host with %d is out, where another has %d", per(out.host), most)
		}
		for k := range open {
			if out != nil && k.moved.Load() < out.moved.Load() && per(k.host) == per(out.host) && (k.host == out.host || own < bounds.ConnsPerHost) {
				t.Fatal("another was idle for longer")
			}
		}
		delete(open, out)
		if open[c] = true; p.n != len(open) {
			t.Fatalf("%d are counted, %d are open", p.n, len(open))
		}
	}
}

func BenchmarkMakeRoom(b *testing.B) {
	server, _ := net.Pipe()
	for _, hosts := range []int{1, 100, 8000} {
		b.Run(fmt.Sprint("hosts=", hosts), func(b *testing.B) {
			p := places{bounds: Bounds{Conns: 8000}, hosts: map[netip.Prefix]*host{}}
			come := func(i int) {
				c := newConn(server, 0)
				c.host = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i % hosts >> 8), byte(i % hosts)}), 32)
				p.take(c)
			}
			for i := range 8000 {
				come(i)
			}
			for i := 0; b.Loop(); i++ {
				come(i)
			}
		})
	}
}
