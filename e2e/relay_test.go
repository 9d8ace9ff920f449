package e2e

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// A relay forwards TCP connections between a scraper and a service. It withholds the response of every fifth request,
// counted over all connections: the service sees that the whole response has arrived, and the scrape times out. After
// the scraper has closed such a connection, the relay closes the connection to the service some time later.
type relay struct {
	addr     string // of the service
	late     time.Duration
	clear    atomic.Bool // forward everything from now on
	requests atomic.Int64
	kept     atomic.Int64 // withheld responses
}

// startRelay starts a relay that listens until the test ends.
func startRelay(t *testing.T, addr string, late time.Duration) (*relay, string) {
	t.Helper()
	x := &relay{addr: addr, late: late}
	l := listen(t, "127.0.0.1:0")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			go x.forward(c)
		}
	}()
	return x, l.Addr().String()
}

func (x *relay) forward(scraper net.Conn) {
	service, err := net.Dial("tcp", x.addr)
	if err != nil {
		_ = scraper.Close()
		return
	}
	var keeps atomic.Bool
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := service.Read(buf)
			if err != nil {
				_ = scraper.Close()
				return
			}
			if !keeps.Load() {
				_, _ = scraper.Write(buf[:n]) // the scraper may have disconnected
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := scraper.Read(buf) // a whole request: they are small
		if err != nil {
			if err != io.EOF || keeps.Load() {
				time.Sleep(x.late)
			}
			_ = service.Close()
			return
		}
		if x.requests.Add(1)%5 == 0 && !x.clear.Load() {
			x.kept.Add(1)
			keeps.Store(true)
		}
		if _, err := service.Write(buf[:n]); err != nil {
			_ = scraper.Close()
			return
		}
	}
}
