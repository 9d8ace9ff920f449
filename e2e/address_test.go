package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
)

// Servers get their ports from below those that a system gives to whoever dials, or asks for any: one of those can be
// taken between the moment it is found free and the moment a server listens there, and in the time a server is away.
const (
	firstPort = 20_000
	portCount = 10_000
)

// Where a run begins is left to chance, for those that run beside each other.
var (
	offset = rand.Int64N(portCount)
	ports  atomic.Int64
)

// freeAddress is one on which nobody listens, and no other test will.
func freeAddress(t *testing.T) string {
	t.Helper()
	// A program that is being started would have the listener for a moment, and its port would not be free.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for range portCount {
		addr := fmt.Sprintf("127.0.0.1:%d", firstPort+(offset+ports.Add(1))%portCount)
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatalf("all ports from %d to %d are in use", firstPort, firstPort+portCount-1)
	return ""
}

// listenTwice listens at two addresses of this machine, such that who dials the one comes from another
// address than who dials the other: a machine dials its own address from that address.
func listenTwice(t *testing.T) (first, second net.Listener) {
	t.Helper()
	first = listen(t, "127.0.0.1:0")
	for _, host := range otherHosts(t) {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Logf("no second address: %v", err)
			continue
		}
		if from, err := dialledFrom(l); err != nil || from == "127.0.0.1" {
			t.Logf("no second address: who dials %s comes from %q: %v", host, from, err)
			_ = l.Close()
			continue
		}
		t.Cleanup(func() { _ = l.Close() })
		return first, l
	}
	t.Fatal("this machine has only the address 127.0.0.1, neither ::1 nor one of a network: no two clients can come from different addresses")
	return nil, nil
}

// otherHosts are the machine's addresses: ::1 first, because nobody else can reach that.
func otherHosts(t *testing.T) []string {
	t.Helper()
	hosts := []string{"::1"}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Logf("the machine's addresses: %v", err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			hosts = append(hosts, ip.IP.String())
		}
	}
	// Not every system takes these for itself, and not every one dials them from themselves.
	return append(hosts, "127.0.0.2")
}

// dialledFrom is the address from which this machine dials a listener.
func dialledFrom(l net.Listener) (host string, err error) {
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return "", err
	}
	defer c.Close()
	accepted, err := l.Accept()
	if err != nil {
		return "", err
	}
	defer accepted.Close()
	host, _, err = net.SplitHostPort(accepted.RemoteAddr().String())
	return host, err
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// accept serves each connection to an address of its own.
func accept(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l := listen(t, "127.0.0.1:0")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}
