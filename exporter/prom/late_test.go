package prom_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/prom"
)

// lateScraper scrapes with an interval that equals its timeout, and stores seconds as Prometheus does: none that is older than the
// newest one. It is not safe for concurrent use.
type lateScraper struct {
	client
	stored map[int64]bool
	newest int64
}

var stamped = regexp.MustCompile(`(?m)^windowstat_persecond_block\{resource="resource 0"\} \S+ (\d+)000$`)

// store reads a response in time.
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

// A scrape times out although its whole response has arrived, and its connection closes some time after the next request has
// begun on another one. Each second is stored or unconfirmed, however late that is.
func TestConnectionsThatCloseLate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows what has arrived")
	}
	for _, late := range []int{0, 20, 40, 60, 100, 300, 1000} {
		for with, start := range map[string]func(*httptest.Server){"plain": (*httptest.Server).Start, "TLS": (*httptest.Server).StartTLS} {
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
				for range 3 { // timeouts, each of which is followed by three scrapes in time
					now.add(time.Second)
					s.ask()
					if _, err := s.buf.Peek(1); err != nil { // it has arrived, and nobody reads it
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
				t.Logf("%v of %d seconds are lost, %v are unconfirmed, %v were sent again", lost, seconds, unconfirmed, n["cursor_resent_seconds_total"])
				if lost > unconfirmed || n["cursor_lost_seconds_total"] != 0 {
					t.Errorf("%v seconds are lost, and %v are unconfirmed", lost, unconfirmed)
				}
			})
		}
	}
}
