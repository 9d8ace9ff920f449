package prom

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/netlimit"
)

func newPage(t *testing.T) *Seconds {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := NewSeconds(c, SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// hidden is a listener whose connections do not expose their sockets.
type hidden struct{ net.Listener }

type hiddenConn struct{ net.Conn }

func (l hidden) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return hiddenConn{c}, err
}

// other is a listener whose connections return a new address value from each LocalAddr, as a user-space network may do.
type other struct{ net.Listener }

type otherConn struct{ net.Conn }

func (c otherConn) LocalAddr() net.Addr {
	address := *c.Conn.LocalAddr().(*net.TCPAddr)
	return &address
}

func (l other) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return otherConn{c}, err
}

// one is a listener whose connections all report its own address, as the connections of a tunnel may do.
type one struct{ net.Listener }

type oneConn struct {
	net.Conn
	l net.Listener
}

func (c oneConn) LocalAddr() net.Addr { return c.l.Addr() }

func (l one) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return oneConn{c, l.Listener}, err
}

// A handler and the hook find the same connection, regardless of wrappers, and never a different connection.
func TestConnectionOfARequest(t *testing.T) {
	bounded := func(l net.Listener) net.Listener { return netlimit.Listen(l, netlimit.Bounds{Conns: 9}) }
	for name, tc := range map[string]struct {
		listener func(net.Listener) net.Listener
		tls      bool
		header   string
		known    int // connections that the handler finds
	}{
		"plain":        {known: 3},
		"TLS":          {tls: true, known: 3},
		"bounded":      {listener: bounded, known: 3},
		"bounded, TLS": {listener: bounded, tls: true, known: 3},
		"wrapped":      {listener: func(l net.Listener) net.Listener { return hidden{l} }, known: 3},
		// Found before the second connection exists.
		"with one address":        {listener: func(l net.Listener) net.Listener { return one{l} }, known: 1},
		"with new address values": {listener: func(l net.Listener) net.Listener { return other{l} }},
		"a proxy":                 {header: "X-Envoy-Internal"},
		"to be closed":            {header: "Connection"},
		"HTTP/2, with TLS":        {tls: true},
	} {
		t.Run(name, func(t *testing.T) {
			page := newPage(t)
			found := make(chan *response, 1)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.RemoteAddr = "192.0.2.1:1" // as middleware does
				found <- page.newResponse(w, r)
			}))
			server.Config.ConnState = page.ConnState
			server.EnableHTTP2 = name == "HTTP/2, with TLS"
			if tc.listener != nil {
				server.Listener = tc.listener(server.Listener)
			}
			if tc.tls {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			begun := map[*connection]int{}
			for i := range 6 { // three connections: requests 0 and 3 each open their own
				transport := server.Client().Transport.(*http.Transport)
				if i%3 == 0 {
					transport = transport.Clone()
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				if tc.header != "" {
					r.Header.Set(tc.header, "close")
				}
				resp, err := transport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if a := <-found; a != nil {
					begun[a.conn]++
					if a.request != begun[a.conn] {
						t.Errorf("request %d on the connection has number %d", begun[a.conn], a.request)
					}
				}
			}
			proven := 0
			for _, n := range begun {
				proven += n
			}
			if want := map[int]int{0: 0, 1: 1, 3: 6}[tc.known]; proven != want {
				t.Errorf("%d requests, want %d", proven, want)
			}
			if len(begun) != tc.known {
				t.Errorf("%d connections, want %d", len(begun), tc.known)
			}
		})
	}
}

// Closed connections are removed, no matter which side closed them.
func TestClosedConnectionsAreRemoved(t *testing.T) {
	for name, listener := range map[string]func(net.Listener) net.Listener{
		"plain":                   func(l net.Listener) net.Listener { return l },
		"with one address":        func(l net.Listener) net.Listener { return one{l} },
		"with new address values": func(l net.Listener) net.Listener { return other{l} },
	} {
		page := newPage(t)
		mux := http.NewServeMux()
		mux.Handle("/", page)
		mux.HandleFunc("/hijack", func(w http.ResponseWriter, _ *http.Request) {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = c.Close()
			}
		})
		server := httptest.NewUnstartedServer(mux)
		server.Listener = listener(server.Listener)
		server.Config.ConnState = page.ConnState
		server.Start()
		defer server.Close()
		for i := range 40 {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			switch i % 4 {
			case 0:
				_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			case 1:
				_, _ = io.WriteString(conn, "GET /hijack HTTP/1.1\r\nHost: x\r\n\r\n")
				_, _ = bufio.NewReader(conn).ReadByte()
			case 2:
				_, _ = io.WriteString(conn, "GET /?cursor=a HTTP/1.1\r\nHost: x\r\n\r\n")
				_, _ = bufio.NewReader(conn).ReadByte()
				_ = conn.(*net.TCPConn).SetLinger(0)
			}
			_ = conn.Close()
		}
		open := func() (n int) {
			page.conns.open.Range(func(any, any) bool { n++; return true })
			return n
		}
		end := time.Now().Add(10 * time.Second)
		for ; open() > 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		}
		if n := open(); n > 0 {
			t.Errorf("%s: %d connections are still tracked", name, n)
		}
	}
}
