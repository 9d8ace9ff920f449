package prom

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Closed connections are forgotten, however they were closed.
func TestClosedConnectionsAreForgotten(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := NewSeconds(c, SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(page)
	server.Listener = page.Watch(server.Listener)
	server.Start()
	defer server.Close()
	for i := range 20 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		}
		_ = conn.Close()
	}
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	open := 0
	for range 200 {
		open = 0
		page.conns.open.Range(func(any, any) bool { open++; return true })
		if open == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d connections are still known", open)
}

// The position after a restart, for any position in the file.
func TestResume(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := now.Unix()
	for name, tc := range map[string]struct {
		after      time.Duration // the last second in the log, from the present
		next, want int64         // from the first second
	}{
		"before":                 {-time.Hour, -20, -20},
		"long before":            {-time.Hour, -1 << 40, -601},
		"nonsense":               {-time.Hour, -1 << 62, -601},
		"at once":                {-time.Hour, 0, 0},
		"a little ahead":         {-time.Hour, 30, 30},
		"as far as can be":       {-time.Hour, 300, 300},
		"farther":                {-time.Hour, 301, 0},
		"much farther":           {-time.Hour, 1 << 40, 0},
		"all that it has is new": {time.Hour, 3600, 0},
		"the same, behind":       {time.Hour, -100, 0},
	} {
		c, err := collector.New(collector.Options{Now: func() time.Time { return now }, After: now.Add(tc.after)})
		if err != nil {
			t.Fatal(err)
		}
		page, err := NewSeconds(c, SecondsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := page.resume(first+tc.next) - page.first; got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
