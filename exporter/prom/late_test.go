package prom_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/internal/netlimit"
)

// starts has the functions that start a server without and with TLS.
var starts = map[string]func(*httptest.Server){
	"plain": (*httptest.Server).Start, "TLS": (*httptest.Server).StartTLS,
}

// lateScraper is a scraper whose interval equals its timeout. It stores seconds as Prometheus does: it drops seconds
// older than the newest one. It is not safe for concurrent use.
type lateScraper struct {
	client
	stored map[int64]bool
	newest int64
}

var stamped = regexp.MustCompile(`(?m)^windowstat_persecond_block\{resource="resource 0"\} \S+ (\d+)000$`)

// store reads a response in time and stores its seconds.
func (s *lateScraper) store() {
	s.t.Helper()
	resp, err := http.ReadResponse(s.buf, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %v", resp.Status, err)
	}
	for _, m := range stamped.FindAllSubmatch(body, -1) {
		second, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		if second > s.newest {
			s.stored[second], s.newest = true, second
		}
	}
}

// A scrape times out although its whole response has arrived, and its connection closes some time after the next
// request has begun on another connection. Each second is stored or unconfirmed, for any delay of the close.
func TestConnectionsThatCloseLate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows what has arrived")
	}
	for _, late := range []int{0, 20, 40, 60, 100, 300, 1000} {
		for with, start := range starts {
			t.Run(fmt.Sprintf("%d ms/%s", late, with), func(t *testing.T) {
				t.Parallel()
				server := &states{conns: map[string]net.Conn{}, had: map[string]map[http.ConnState]int{}}
				page, now, addr := watched(t, 1, func(s *httptest.Server, page *prom.Seconds) {
					s.Config.ConnState = server.hook
					hook(s, page)
					start(s)
				})
				connect := func() client {
					if with == "TLS" {
						return dial(t, addr).tls()
					}
					return dial(t, addr)
				}
				s := lateScraper{client: connect(), stored: map[int64]bool{}}
				s.ask()
				s.store()
				for range 3 { // three timeouts, each followed by three scrapes in time
					now.add(time.Second)
					s.ask()
					// The response has arrived, and the client does not read it.
					if _, err := s.buf.Peek(1); err != nil {
						t.Fatal(err)
					}
					server.arrived(s.client)
					out := s.client
					s.client = connect()
					now.add(time.Second)
					s.ask()
					time.Sleep(time.Duration(late) * time.Millisecond)
					_ = out.Close()
					server.await(out, http.StateClosed, 1)
					s.store()
					for range 3 {
						now.add(time.Second)
						s.ask()
						s.store()
					}
				}
				const seconds = 10 + 3*5
				n := page.Counts()
				lost, unconfirmed := float64(seconds-len(s.stored)), n["cursor_unconfirmed_seconds_total"]
				t.Logf("%v of %d seconds lost, %v unconfirmed, %v sent again",
					lost, seconds, unconfirmed, n["cursor_resent_seconds_total"])
				if lost > unconfirmed || n["cursor_lost_seconds_total"] != 0 {
					t.Errorf("%v seconds lost, but only %v unconfirmed", lost, unconfirmed)
				}
			})
		}
	}
}

// deaf is a listener whose connections read data but do not return it from the time the test sets closing until it
// closes heard.
type deaf struct {
	net.Listener
	closing *atomic.Bool
	heard   chan struct{}
}

type deafConn struct {
	*net.TCPConn
	l deaf
}

func (l deaf) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return deafConn{c.(*net.TCPConn), l}, nil
}

func (c deafConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if c.l.closing.Load() {
		<-c.l.heard
	}
	return n, err
}

// The client has closed the connection of a scrape that timed out, and net/http has not read the FIN yet, as in a busy
// service.
func TestConnectionsWithUnreadFIN(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the state of a connection")
	}
	for with, start := range starts {
		t.Run(with, func(t *testing.T) {
			server := &states{conns: map[string]net.Conn{}, had: map[string]map[http.ConnState]int{}}
			var closing atomic.Bool
			heard := make(chan struct{})
			page, _, addr := watched(t, 1, func(s *httptest.Server, page *prom.Seconds) {
				s.Listener = deaf{s.Listener, &closing, heard}
				s.Config.ConnState = server.hook
				hook(s, page)
				start(s)
			})
			t.Cleanup(func() { close(heard) }) // before the server is closed
			first, next := dial(t, addr), dial(t, addr)
			if with == "TLS" {
				first, next = first.tls(), next.tls()
			}
			page.OnAwait(func(ctx context.Context, _ <-chan struct{}) bool {
				closing.Store(true)
				_ = first.Close()
				eventually(t, "the FIN does not arrive", func() bool {
					server.Lock()
					defer server.Unlock()
					return netlimit.PeerClosed(server.conns[first.LocalAddr().String()])
				})
				return ctx.Err() == nil
			})
			first.ask()
			if _, err := first.buf.Peek(1); err != nil {
				t.Fatal(err)
			}
			server.await(first, http.StateIdle, 1)
			server.arrived(first)
			if got := next.get(); got != 10 {
				t.Errorf("%d seconds, want all seconds again", got)
			}
			expect(t, page, 0, 0, 10)
		})
	}
}

// A connection was idle for the whole wait, so its response counts as read. The next event of the connection confirms
// this or revokes it.
func TestIdleConnectionsAfterTheVerdict(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows what has arrived")
	}
	for name, tc := range map[string]struct {
		use         bool // the client sends another request
		unconfirmed float64
	}{
		"used, and closed": {true, 0},
		"closed":           {false, 10},
	} {
		server := &states{conns: map[string]net.Conn{}, had: map[string]map[http.ConnState]int{}}
		page, now, addr := watched(t, 1, func(s *httptest.Server, page *prom.Seconds) {
			page.OnAwait(func(ctx context.Context, _ <-chan struct{}) bool { return ctx.Err() == nil })
			s.Config.ConnState = server.hook
			plain(s, page)
		})
		first, next := dial(t, addr), dial(t, addr)
		first.ask()
		if _, err := first.buf.Peek(1); err != nil {
			t.Fatal(err)
		}
		server.await(first, http.StateIdle, 1)
		server.arrived(first)
		now.add(time.Second)
		if got := next.get(); got != 1 {
			t.Errorf("%s: %d seconds, want 1", name, got)
		}
		expect(t, page, 10, 0, 0)
		if tc.use {
			_ = first.seconds()
			_, _ = io.WriteString(first, "GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
			server.await(first, http.StateIdle, 2)
		}
		_ = first.Close()
		server.await(first, http.StateClosed, 1)
		now.add(time.Second)
		if got := next.get(); got != 1 {
			t.Errorf("%s: %d seconds, want 1", name, got)
		}
		expect(t, page, 11, tc.unconfirmed, 0)
	}
}

// The end of the connection ends the wait.
func TestTheWaitEndsWithTheConnection(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows what has arrived")
	}
	server := &states{conns: map[string]net.Conn{}, had: map[string]map[http.ConnState]int{}}
	page, _, addr := watched(t, 1, func(s *httptest.Server, page *prom.Seconds) {
		s.Config.ConnState = server.hook
		hook(s, page)
		s.Start()
	})
	first, next := dial(t, addr), dial(t, addr)
	page.OnAwait(func(ctx context.Context, changed <-chan struct{}) bool {
		_ = first.Close()
		select {
		case <-changed:
		case <-time.After(20 * time.Second): // only a defect exceeds this timeout
			t.Error("the wait does not end")
		}
		return ctx.Err() == nil
	})
	first.ask()
	if _, err := first.buf.Peek(1); err != nil {
		t.Fatal(err)
	}
	server.await(first, http.StateIdle, 1)
	server.arrived(first)
	if got := next.get(); got != 10 {
		t.Errorf("%d seconds, want all seconds again", got)
	}
	expect(t, page, 0, 0, 10)
}
