package prom_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
)

// served is a process with a metric log that serves a per-second page.
type served struct {
	t    *testing.T
	dir  string
	now  *atomic.Pointer[time.Time]
	log  *metriclog.Writer
	page *prom.Seconds
	*httptest.Server
}

func serve(t *testing.T, dir string, now *atomic.Pointer[time.Time]) *served {
	t.Helper()
	o := metriclog.Options{Dir: dir, App: "shop", Logger: slog.New(slog.DiscardHandler)}
	last, err := metriclog.Last(o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := collector.New(collector.Options{Now: func() time.Time { return *now.Load() }, After: last})
	if err != nil {
		t.Fatal(err)
	}
	w, err := metriclog.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	c.Resource("resource 0").Block("")
	page, err := prom.NewSeconds(c, prom.SecondsOptions{Log: w})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(page)
	plain(server, page)
	return &served{t, dir, now, w, page, server}
}

// end ends the process after it has logged all seconds.
func (s *served) end() {
	s.t.Helper()
	s.Close()
	if err := errors.Join(s.log.Flush(), s.log.Close()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *served) pass(d time.Duration) {
	later := s.now.Load().Add(d)
	s.now.Store(&later)
}

// saved returns the only position in the file of positions.
func (s *served) saved() (p struct {
	Host        string
	Next, Doubt int64
},
) {
	list := []any{&p}
	if b, err := os.ReadFile(filepath.Join(s.dir, "shop-cursors.json")); err == nil {
		if err := json.Unmarshal(b, &list); err != nil {
			s.t.Error(err)
		}
	}
	return p
}

// A position is saved when the response has ended, with the seconds in doubt if the connection will show whether they
// were read.
func TestPositionIsSaved(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for request, doubt := range map[string]int64{
		"GET /?cursor=a HTTP/1.1\r\nHost: shop:80\r\n\r\n":                                                 10,
		"GET /?cursor=a HTTP/1.1\r\nHost: shop:80\r\nConnection: close\r\n\r\n":                            0,
		"GET /?cursor=a HTTP/1.1\r\nHost: shop:80\r\nVia: x\r\n\r\n":                                       0,
		"GET /?cursor=a HTTP/1.0\r\nHost: shop:80\r\n\r\n":                                                 0,
		"GET /?cursor=a HTTP/1.1\r\nHost: shop:80\r\n\r\nGET /?cursor=a HTTP/1.1\r\nHost: shop:80\r\n\r\n": 0,
	} {
		now := new(atomic.Pointer[time.Time])
		now.Store(&at)
		s := serve(t, t.TempDir(), now)
		s.pass(10 * time.Second)
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		want := at.Unix() + 10
		right := func() bool {
			got := s.saved()
			return got.Host == "shop:80" && got.Doubt == want && got.Next == want-doubt
		}
		for end := time.Now().Add(10 * time.Second); !right() && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
		if !right() {
			t.Errorf("%q: saved %+v, want %d seconds in doubt before %d", request, s.saved(), doubt, want)
		}
		_ = conn.Close()
		s.end()
	}
}

// A process ends after a response, and another one follows. The new process sends the seconds again that may not have
// been read, if the scraper uses the same Host header.
func TestSecondsInDoubtAfterRestart(t *testing.T) {
	for name, tc := range map[string]struct {
		broken, saved bool   // response is broken; positions are saved before connections are closed
		host          string // Host of the next request
		// Seconds in the first response: the log has one earlier second; the other seconds were idle.
		want        int
		unconfirmed float64
	}{
		"read":                          {false, true, "shop:9719", 1, 0},
		"read, another name":            {false, true, "10.0.0.7:9719", 1, 0},
		"broken":                        {true, true, "shop:9719", 2, 0},
		"broken, another name":          {true, true, "10.0.0.7:9719", 1, 10},
		"read, then killed":             {false, false, "shop:9719", 2, 0},
		"broken, then killed":           {true, false, "shop:9719", 2, 0},
		"broken, killed, another name":  {true, false, "10.0.0.7:9719", 1, 10},
		"read, killed, yet another one": {false, false, "", 1, 10},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			now := new(atomic.Pointer[time.Time])
			now.Store(&at)
			s := serve(t, t.TempDir(), now)
			s.pass(10 * time.Second)
			c := dial(t, s.Listener.Addr().String())
			c.host = "shop:9719"
			if c.ask(); tc.broken {
				if _, err := c.buf.Peek(1); err != nil {
					t.Fatal(err)
				}
				settled()
				_ = c.Conn.(*net.TCPConn).SetLinger(0) // reset the connection, as if data had been unread
				_ = c.Close()
			} else {
				_ = c.seconds()
			}
			settled()
			if tc.saved {
				s.page.Save(t.Context())
			}
			s.end()

			s = serve(t, s.dir, now)
			defer s.end()
			s.pass(time.Second)
			c = dial(t, s.Listener.Addr().String())
			c.host = tc.host
			if got := c.get(); got != tc.want {
				t.Errorf("%d seconds, want %d", got, tc.want)
			}
			if got := s.page.Counts()["cursor_unconfirmed_seconds_total"]; got != tc.unconfirmed {
				t.Errorf("%v unconfirmed seconds, want %v", got, tc.unconfirmed)
			}
			if got := c.get(); got != 0 {
				t.Errorf("then %d seconds", got)
			}
		})
	}
}

// Cursors of many scrapers are saved while they are requested.
func TestSaveDuringRequests(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := new(atomic.Pointer[time.Time])
	now.Store(&at)
	s := serve(t, t.TempDir(), now)
	defer s.end()
	for range 3 {
		s.pass(time.Second)
		var all sync.WaitGroup
		for range 4 {
			c := dial(t, s.Listener.Addr().String())
			all.Go(func() {
				c.get()
				s.page.Save(t.Context())
			})
		}
		all.Wait()
	}
}
