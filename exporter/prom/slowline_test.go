package prom_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// line is a listener for one client, in memory.
type line struct{ c chan net.Conn }

func (l line) Accept() (net.Conn, error) {
	if c, ok := <-l.c; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l line) Close() error { close(l.c); return nil }

func (l line) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9719} }

// A scraper that needs nearly all of its minute to read a page over a slow line gets the whole page. A scraper that
// exceeds its timeout is disconnected.
func TestScrapeOverSlowLine(t *testing.T) {
	for _, tc := range []struct {
		name  string
		takes time.Duration
		whole bool
	}{{"in time", 55 * time.Second, true}, {"too slow", 5 * time.Minute, false}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := collector.New(collector.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for i := range 300 {
					c.Resource(fmt.Sprint("resource ", i)).Block("")
				}
				page, err := prom.NewSeconds(c, prom.SecondsOptions{})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				l := line{make(chan net.Conn, 1)}
				server := &http.Server{
					Handler:           page,
					ReadHeaderTimeout: 10 * time.Second,
					WriteTimeout:      65 * time.Second,
				}
				go server.Serve(l) //nolint:errcheck // returns when it is closed
				client, at := net.Pipe()
				l.c <- at
				defer server.Close() //nolint:errcheck // the test is over
				defer client.Close() //nolint:errcheck // the test is over
				const request = "GET /?window=10s HTTP/1.1\r\nHost: x\r\n" +
					"X-Prometheus-Scrape-Timeout-Seconds: 60\r\n\r\n"
				if _, err := io.WriteString(client, request); err != nil {
					t.Fatal(err)
				}
				const about = 9 << 18 // bytes of the page
				pause := tc.takes / (about / 4096)
				slow := bufio.NewReader(&paced{client, pause})
				resp, err := http.ReadResponse(slow, nil)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				b, err := io.ReadAll(resp.Body)
				if n := bytes.Count(b, []byte(`block{resource="resource 299"}`)); (err == nil && n == 10) != tc.whole {
					t.Errorf(
						"%d bytes, %d seconds of the last resource, %v after %v",
						len(b),
						n,
						err,
						time.Since(began),
					)
				}
				if took := time.Since(began); took > 62*time.Second {
					t.Errorf("the page was sent for %v", took)
				}
				if tc.whole && (len(b) < about/2 || len(b) > 2*about) {
					t.Errorf("the page has %d bytes", len(b))
				}
			})
		})
	}
}

// paced reads from a line with a pause for each 4 KiB.
type paced struct {
	io.Reader
	pause time.Duration
}

func (p *paced) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b[:min(len(b), 4096)])
	time.Sleep(p.pause * time.Duration(n) / 4096)
	return n, err
}
