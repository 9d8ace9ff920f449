package netlimit

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// The kernel shows that the peer has closed a connection before anything reads the connection.
func TestPeerClosed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the state of a connection")
	}
	for name, end := range map[string]func(*net.TCPConn) error{
		"closed":      (*net.TCPConn).Close,
		"half closed": (*net.TCPConn).CloseWrite,
		"reset": func(c *net.TCPConn) error {
			_ = c.SetLinger(0)
			return c.Close()
		},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() //nolint:errcheck // nothing is written
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close() //nolint:errcheck // nothing is written
		if PeerClosed(server) {
			t.Errorf("%s: an open connection is reported as closed", name)
		}
		if err := end(client.(*net.TCPConn)); err != nil {
			t.Fatal(err)
		}
		for range 10_000 {
			if PeerClosed(server) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if !PeerClosed(server) {
			t.Errorf("%s: the end is not reported", name)
		}
		_ = client.Close()
	}
	here, _ := net.Pipe()
	if PeerClosed(here) {
		t.Error("a connection without a socket is reported as closed")
	}
}
