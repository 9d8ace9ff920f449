package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
)

// Servers get ports below the range that the system assigns to outgoing connections and to listeners on port 0. The
// system could otherwise assign such a port between the check and the start of the server, or while the server is
// stopped.
const (
	firstPort = 20_000
	portCount = 10_000
)

// The first port of a run is random, because several runs may share the machine.
var (
	offset = rand.Int64N(portCount)
	ports  atomic.Int64
)

// freeAddress returns an address without a listener that no other test receives.
func freeAddress(t *testing.T) string {
	t.Helper()
	// A child process that is being started inherits the listener for a short time, and the port would remain in use.
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

// listenTwice listens on two addresses of this machine. Connections to the two listeners come from different hosts,
// because a machine connects to its own address from the same address.
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
	t.Fatal("this machine has only the address 127.0.0.1, neither ::1 nor one of a network: no two clients can come " +
		"from different addresses")
	return nil, nil
}

// otherHosts returns the addresses of this machine. ::1 is the first, because other machines cannot reach it.
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
	// Some systems do not accept these addresses as local, and some connect to them from another address.
	return append(hosts, "127.0.0.2")
}

// dialledFrom returns the source address of a connection from this machine to l.
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

// accept serves each connection to its own address.
func accept(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l := listen(t, "127.0.0.1:0")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}
