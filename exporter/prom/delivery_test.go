package prom_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/internal/netlimit"
)

// clock is a clock that a test moves while a server reads it.
type clock struct{ atomic.Int64 }

func (c *clock) add(d time.Duration) { c.Add(int64(d)) }

func clocked(t *testing.T) (*collector.Collector, *clock) {
	t.Helper()
	now := new(clock)
	now.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	c, err := collector.New(collector.Options{Now: func() time.Time { return time.Unix(0, now.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	return c, now
}

// watched serves a per-second page on real connections, which its hook sees. Only the test moves the clock.
func watched(
	t *testing.T,
	resources int,
	start func(*httptest.Server, *prom.Seconds),
) (page *prom.Seconds, now *clock, addr string) {
	t.Helper()
	c, now := clocked(t)
	for i := range resources {
		c.Resource(fmt.Sprint("resource ", i)).Block("")
	}
	page, err := prom.NewSeconds(c, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(page)
	start(server, page)
	t.Cleanup(server.Close)
	now.add(10 * time.Second)
	return page, now, server.Listener.Addr().String()
}

func plain(s *httptest.Server, page *prom.Seconds) {
	hook(s, page)
	s.Start()
}

// hook sets the ConnState hook of a server that has not started, so that the page sees its connections. An existing
// hook remains.
func hook(s *httptest.Server, page *prom.Seconds) {
	other := s.Config.ConnState
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		page.ConnState(c, state)
		if other != nil {
			other(c, state)
		}
	}
}

// client is a connection to a page.
type client struct {
	t testing.TB
	net.Conn
	buf  *bufio.Reader
	host string // Host header
}

func dial(t testing.TB, addr string) client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{t, c, bufio.NewReader(c), "x"}
}

// tls makes the client use TLS from now on.
func (c client) tls() client {
	over := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true})
	return client{c.t, over, bufio.NewReader(over), c.host}
}

// ask sends a request and does not read the response.
func (c client) ask(headers ...string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, "GET /?cursor=a&metric=persecond_block HTTP/1.1\r\nHost: %s\r\n%s\r\n", c.host,
		strings.Join(append(headers, ""), "\r\n")); err != nil {
		c.t.Fatal(err)
	}
}

// seconds reads a response and returns the number of seconds of one resource.
func (c client) seconds() int {
	c.t.Helper()
	resp, err := http.ReadResponse(c.buf, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %v", resp.Status, err)
	}
	return bytes.Count(body, []byte(`block{resource="resource 0"}`))
}

func (c client) get(headers ...string) int {
	c.t.Helper()
	c.ask(headers...)
	return c.seconds()
}

// counts returns the counts of seconds of the only cursor of a page.
func counts(page *prom.Seconds) map[string]float64 { return page.Counts() }

// settled waits until the server has processed the changes of its connections.
func settled() {
	for range 100 {
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
}

func expect(t *testing.T, page *prom.Seconds, delivered, unconfirmed, resent float64) {
	t.Helper()
	got := counts(page)
	for name, want := range map[string]float64{
		"cursor_delivered_seconds_total":   delivered,
		"cursor_unconfirmed_seconds_total": unconfirmed,
		"cursor_resent_seconds_total":      resent,
		"cursor_lost_seconds_total":        0,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

func TestResponsesThatWereRead(t *testing.T) {
	page, now, addr := watched(t, 1, plain)
	c := dial(t, addr)
	for i, want := range []int{10, 3, 3} { // on one connection
		if got := c.get(); got != want {
			t.Errorf("response %d has %d seconds, want %d", i, got, want)
		}
		now.add(3 * time.Second)
	}
	settled()
	if got := dial(t, addr).get(); got != 3 { // stays idle
		t.Errorf("%d seconds on another connection, want 3", got)
	}
	expect(t, page, 16, 0, 0)
}

// Several targets of one job at one address share connections, as in Prometheus. Each scrape uses any free connection.
func TestResponsesOverSharedConnections(t *testing.T) {
	page, now, addr := watched(t, 1, plain)
	conns := []client{dial(t, addr), dial(t, addr), dial(t, addr)}
	want := 10
	for i := range 9 {
		if got := conns[i*i%3].get(); got != want {
			t.Errorf("response %d has %d seconds, want %d", i, got, want)
		}
		_, _ = io.WriteString(conns[i%2], "GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
		if resp, err := http.ReadResponse(conns[i%2].buf, nil); err != nil {
			t.Fatal(err)
		} else if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		settled()
		want = 3
		now.add(3 * time.Second)
	}
	expect(t, page, 10+7*3, 0, 0) // the last response is undecided
}

// A response is sent again if it was unread when the client closed the connection.
func TestResponsesThatWereNotRead(t *testing.T) {
	page, now, addr := watched(t, 1, plain)
	lost := func() {
		t.Helper()
		c := dial(t, addr)
		c.ask()
		if _, err := c.buf.Peek(1); err != nil { // the response has arrived
			t.Fatal(err)
		}
		settled()
		if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil { // reset the connection, as if data had been unread
			t.Fatal(err)
		}
		_ = c.Close()
		settled()
	}
	lost()
	now.add(time.Second)
	for range 4 {
		lost()
	}
	if got := dial(t, addr).get(); got != 11 {
		t.Errorf("%d seconds, want all seconds again", got)
	}
	settled()
	expect(t, page, 0, 0, 10+4*11)
}

// A client also closes the connection if it times out, possibly after it has read everything except the last chunk.
func TestResponsesThatTimedOut(t *testing.T) {
	var page *prom.Seconds
	written, held := make(chan struct{}), make(chan struct{})
	page, _, addr := watched(t, 1, func(s *httptest.Server, p *prom.Seconds) {
		first := true
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.ServeHTTP(w, r)
			if first { // a handler around the page delays the response
				first = false
				close(written)
				<-r.Context().Done()
				close(held)
			}
		})
		plain(s, p)
	})
	c := dial(t, addr)
	c.ask()
	<-written
	if _, err := io.CopyN(io.Discard, c.buf, 500); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	<-held
	if got := dial(t, addr).get(); got != 10 {
		t.Errorf("%d seconds, want all seconds again", got)
	}
	expect(t, page, 0, 0, 10)
}

// The network is cut during a response: the connection stays open, and the client uses another one after its scrape has
// timed out.
func TestResponsesThatAreStuck(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports how much has arrived")
	}
	gaveUp := make(chan struct{}, 3)
	page, _, addr := watched(t, 1_900, func(s *httptest.Server, p *prom.Seconds) {
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.ServeHTTP(w, r)
			gaveUp <- struct{}{}
		})
		plain(s, p)
	})
	stuck := dial(t, addr)
	if err := stuck.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	stuck.ask("X-Prometheus-Scrape-Timeout-Seconds: 0.5")
	<-gaveUp // or the server has written the whole response
	next := dial(t, addr)
	if next.get() != 10 || next.get() != 0 {
		t.Error("the seconds were not sent again")
	}
	expect(t, page, 10, 0, 10)
}

// states counts how often each connection of a server was in each state, by the address of the client.
type states struct {
	sync.Mutex
	conns map[string]net.Conn
	had   map[string]map[http.ConnState]int
}

func (s *states) hook(c net.Conn, state http.ConnState) {
	s.Lock()
	defer s.Unlock()
	from := c.RemoteAddr().String()
	if s.had[from] == nil {
		s.had[from] = map[http.ConnState]int{}
	}
	s.had[from][state]++
	s.conns[from] = c
}

// await waits until a client's connection has been in a state n times.
func (s *states) await(c client, state http.ConnState, n int) {
	c.t.Helper()
	eventually(c.t, fmt.Sprint("the connection is not ", state), func() bool {
		s.Lock()
		defer s.Unlock()
		return s.had[c.LocalAddr().String()][state] >= n
	})
}

// arrived waits until the machine of the client has received everything.
func (s *states) arrived(c client) {
	c.t.Helper()
	eventually(c.t, "the response does not arrive", func() bool {
		s.Lock()
		defer s.Unlock()
		n, known := netlimit.Unacknowledged(s.conns[c.LocalAddr().String()])
		return n == 0 || !known
	})
}

// eventually waits for a condition. Only a defect exceeds its timeout.
func eventually(t testing.TB, otherwise string, condition func() bool) {
	t.Helper()
	for range 20_000 {
		if condition() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal(otherwise)
}

// The scrape times out after everything has been written, and the next one begins before the connection has ended: the
// timeout equals the interval.
func TestNextScrapeBeforeTheEndOfTheLast(t *testing.T) {
	type end func(c client, server *states) // acts on the first connection
	for _, tc := range []struct {
		name      string
		resources int
		before    end // before the next scrape; nil: wait until everything has arrived
		end       end // while the next request waits
		want      int // seconds in the second response
	}{
		{"read, and idle", 50, nil, func(c client, _ *states) { _ = c.seconds() }, 0},
		{"read, and used for something else", 50, nil, func(c client, server *states) {
			_ = c.seconds()
			_, _ = io.WriteString(c, "GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
			server.await(c, http.StateActive, 2)
		}, 0},
		{"read, and closed", 50, nil, func(c client, server *states) { // counts as unread
			_ = c.seconds()
			_ = c.Close()
			server.await(c, http.StateClosed, 1)
		}, 10},
		{"unread, and closed", 50, nil, func(c client, server *states) {
			_ = c.Close()
			server.await(c, http.StateClosed, 1)
		}, 10},
		{"unread, and the network is cut", 1_900, func(client, *states) {}, nil, 10},
		{"read in part, and the network is cut", 1_900, func(c client, _ *states) {
			_, _ = io.CopyN(io.Discard, c.buf, 30_000)
		}, nil, 10},
	} {
		for with, start := range map[string]func(*httptest.Server){
			"plain": (*httptest.Server).Start,
			"TLS":   (*httptest.Server).StartTLS,
		} {
			t.Run(tc.name+"/"+with, func(t *testing.T) {
				if tc.resources > 1000 && runtime.GOOS != "linux" {
					t.Skip("only Linux reports how much has arrived")
				}
				server := &states{conns: map[string]net.Conn{}, had: map[string]map[http.ConnState]int{}}
				var waiting atomic.Bool
				ended := make(chan struct{})
				page, _, addr := watched(t, tc.resources, func(s *httptest.Server, page *prom.Seconds) {
					page.OnAwait(func(ctx context.Context, _ <-chan struct{}) bool {
						waiting.Store(true)
						select {
						case <-ended:
						case <-ctx.Done():
						}
						return ctx.Err() == nil
					})
					s.Config.ConnState = server.hook
					hook(s, page)
					start(s)
				})
				first, next := dial(t, addr), dial(t, addr)
				if err := first.Conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
					t.Fatal(err)
				}
				if with == "TLS" {
					first, next = first.tls(), next.tls()
				}
				first.ask()
				if _, err := first.buf.Peek(1); err != nil {
					t.Fatal(err)
				}
				server.await(first, http.StateIdle, 1) // the server has written everything
				if tc.before != nil {
					tc.before(first, server)
				} else {
					server.arrived(first)
				}
				next.ask()
				if tc.end != nil {
					eventually(t, "the request does not wait", waiting.Load) // before the end of the first connection
					tc.end(first, server)
				}
				close(ended)
				if got := next.seconds(); got != tc.want {
					t.Errorf("%d seconds, want %d", got, tc.want)
				}
				expect(t, page, float64(10-tc.want), 0, float64(tc.want))
			})
		}
	}
}

// Over TLS, a client that closes a connection sends close_notify, which does not count as another request.
func TestResponsesOverTLSThatWereNotRead(t *testing.T) {
	_, _, addr := watched(t, 1, func(s *httptest.Server, page *prom.Seconds) {
		hook(s, page)
		s.StartTLS()
	})
	over := []client{dial(t, addr).tls(), dial(t, addr).tls()}
	over[0].ask()
	settled()           // the server has written everything
	_ = over[0].Close() // everything is unread
	if got := over[1].get(); got != 10 {
		t.Errorf("%d seconds, want all seconds again", got)
	}
}

// A complete response is unconfirmed if its connection proves nothing.
func TestResponsesWithoutProof(t *testing.T) {
	t.Run("proxy", func(t *testing.T) {
		page, now, addr := watched(t, 1, plain)
		c := dial(t, addr)
		for _, header := range []string{
			"X-Forwarded-For: 10.0.0.7", "X-Request-Id: 1",
			"X-Envoy-Expected-Rq-Timeout-Ms: 15000", "X-Forwarded-Proto: http",
		} {
			c.get(header)
			now.add(time.Second)
		}
		expect(t, page, 13, 13, 0)
	})
	t.Run("client that closes connections", func(t *testing.T) {
		page, now, addr := watched(t, 1, plain)
		for range 2 {
			dial(t, addr).get("Connection: close")
			now.add(time.Second)
		}
		expect(t, page, 11, 11, 0)
	})
	t.Run("trusted proxy without a header", func(t *testing.T) {
		c, now := clocked(t)
		c.Resource("resource 0").Block("")
		page, err := prom.NewSeconds(
			c,
			prom.SecondsOptions{
				Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("127.0.0.0/30")},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(page)
		plain(server, page)
		defer server.Close()
		now.add(10 * time.Second)
		kept := dial(t, server.Listener.Addr().String())
		for range 2 {
			kept.get()
			now.add(time.Second)
		}
		expect(t, page, 11, 11, 0)
	})
	t.Run("HTTP/2", func(t *testing.T) {
		page := getTwice(t, true)
		expect(t, page, 11, 11, 0)
	})
	t.Run("server without the hook", func(t *testing.T) {
		c, now := clocked(t)
		c.Resource("resource 0").Block("")
		page, err := prom.NewSeconds(c, prom.SecondsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(page)
		defer server.Close()
		now.add(10 * time.Second)
		addr := server.Listener.Addr().String()
		same := dial(t, addr)
		same.get()
		now.add(time.Second)
		same.get()
		now.add(time.Second)
		dial(t, addr).get()
		expect(t, page, 12, 12, 0)
	})
}

// With TLS, the hook sees a different connection with the same address.
func TestResponsesWithTLS(t *testing.T) {
	page := getTwice(t, false)
	expect(t, page, 10, 0, 0)
}

// getTwice sends two requests to a server with TLS.
func getTwice(t *testing.T, http2 bool) *prom.Seconds {
	t.Helper()
	var client *http.Client // trusts the certificate of the server
	page, now, addr := watched(t, 1, func(s *httptest.Server, page *prom.Seconds) {
		hook(s, page)
		s.EnableHTTP2 = http2
		s.StartTLS()
		client = s.Client()
	})
	for range 2 {
		resp, err := client.Get("https://" + addr + "/?cursor=a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || (resp.ProtoMajor == 2) != http2 {
			t.Fatal(resp.Proto, err)
		}
		_ = resp.Body.Close()
		now.add(time.Second)
	}
	return page
}

// The write deadline disconnects a slow client, and its cursor does not advance. Other clients get responses in the
// meantime.
func TestSlowClient(t *testing.T) {
	page, _, addr := watched(t, 2_000, func(s *httptest.Server, page *prom.Seconds) {
		s.Listener = &smallBuffers{s.Listener}
		plain(s, page)
	})
	slow := dial(t, addr)
	if err := slow.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	slow.ask("X-Prometheus-Scrape-Timeout-Seconds: 0.2")
	if _, err := slow.buf.Peek(1); err != nil {
		t.Fatal(err)
	}
	if got := dial(t, addr).get(); got == 0 { // this request waits for the slow response
		t.Error("the next request got no seconds")
	}
	expect(t, page, 0, 0, 0)
}

// smallBuffers limits the send buffers, so that the server has to wait for its clients sooner.
type smallBuffers struct{ net.Listener }

func (l *smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// A client that closes the connection while most of the response is in the send buffer has not read it.
func TestResponsesThatWereReadInPart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports how much has arrived")
	}
	page, _, addr := watched(t, 1_900, plain)
	part := dial(t, addr)
	if err := part.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	part.ask()
	settled()
	if _, err := io.CopyN(io.Discard, part.buf, 30_000); err != nil {
		t.Fatal(err)
	}
	_ = part.Close()
	settled()
	if got := dial(t, addr).get(); got != 10 {
		t.Errorf("%d seconds, want all seconds again", got)
	}
	if n := counts(page); n["cursor_delivered_seconds_total"] != 0 {
		t.Errorf("%v", n)
	}
}

// HEAD has no body, so it must not advance the cursor; the same holds for any method except GET.
func TestOnlyGetAdvancesTheCursor(t *testing.T) {
	_, _, addr := watched(t, 1, plain)
	c := dial(t, addr)
	for _, method := range []string{"HEAD", "POST", "PUT"} {
		if _, err := fmt.Fprintf(c, "%s /?cursor=a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
			method); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(c.buf, &http.Request{Method: method})
		if err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
			t.Fatalf("%s: %v, %v", method, resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	if got := c.get(); got != 10 {
		t.Errorf("%d seconds", got)
	}
}

// All clients of a Unix socket have the same address, which proves nothing.
func TestResponsesOverUnixSockets(t *testing.T) {
	c, now := clocked(t)
	c.Resource("resource 0").Block("")
	page, err := prom.NewSeconds(c, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: page, ConnState: page.ConnState}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	now.add(10 * time.Second)
	for range 2 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		client{t, conn, bufio.NewReader(conn), "x"}.get()
		_ = conn.Close()
		now.add(time.Second)
	}
	expect(t, page, 11, 11, 0)
}
