package prom_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/prom"
)

// A client that closes its side of the connection while the response is in the send buffer has not read the response,
// although the server has written all of it.
func TestClientClosesBeforeTheResponseIsSent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports how much has arrived")
	}
	states := make(chan http.ConnState, 100)
	page, _, addr := watched(t, 300, func(s *httptest.Server, page *prom.Seconds) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) { states <- state }
		plain(s, page)
	})
	await := func(want http.ConnState) {
		t.Helper()
		for {
			select {
			case state := <-states:
				if state == want {
					return
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("the connection is not %v", want)
			}
		}
	}
	left := dial(t, addr)
	if err := left.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	left.ask()
	await(http.StateIdle) // the server has written everything
	if err := left.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	await(http.StateClosed)
	next := dial(t, addr)
	if got := next.get(); got != 10 {
		t.Errorf("%d seconds, want all seconds again", got)
	}
	if got := next.get(); got != 0 {
		t.Errorf("%d seconds were sent again after they were read", got)
	}
	expect(t, page, 10, 0, 10)
}
