package prom_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
)

// spied is a listener that tells what is about to be written to its connections.
type spied struct {
	net.Listener
	writes func(b []byte)
}

func (s spied) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	return spiedConn{c, s.writes}, err
}

type spiedConn struct {
	net.Conn
	writes func(b []byte)
}

func (c spiedConn) Write(b []byte) (int, error) {
	c.writes(b)
	return c.Conn.Write(b)
}

// A position is saved after the last byte of the response was written, not before, and before the server has shut down.
func TestPositionIsSavedAfterTheLastByte(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 300e6, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	w, err := metriclog.New(c, metriclog.Options{Dir: dir, App: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // nothing is read of it
	page, err := prom.NewSeconds(c, prom.SecondsOptions{Log: w})
	if err != nil {
		t.Fatal(err)
	}
	kept := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "shop-cursors.json"))
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		return string(b)
	}
	for _, request := range []string{
		"GET /?cursor=a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"GET /?cursor=a HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /?cursor=a HTTP/1.0\r\n\r\n", // ends with the connection
	} {
		c.Resource("r").Block("")
		now = now.Add(time.Second)
		before, ends := kept(), 0
		server := httptest.NewUnstartedServer(page)
		server.Listener = page.Watch(spied{server.Listener, func(b []byte) {
			if bytes.HasSuffix(b, []byte("0\r\n\r\n")) {
				ends++
				if kept() != before {
					t.Errorf("%q: the position was saved before the end of the response", request)
				}
			}
		}})
		server.Start()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		response := make([]byte, 0, 4096)
		for !bytes.HasSuffix(response, []byte("0\r\n\r\n")) {
			b := make([]byte, 1024)
			n, err := conn.Read(b)
			if response = append(response, b[:n]...); err != nil {
				break
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := server.Config.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if !bytes.Contains(response, []byte("persecond_block")) || kept() == before {
			t.Errorf("%q: afterwards the position is %q, as before:\n%s", request, kept(), response)
		}
		if chunked := bytes.Contains([]byte(request), []byte("HTTP/1.1")); ends > 0 != chunked {
			t.Errorf("%q: %d ends in\n%s", request, ends, response)
		}
		_ = conn.Close()
		server.Close()
	}
}

// A scrape times out, and the service is restarted before the next one: the seconds are sent by the next process.
func TestScrapeTimesOutBeforeARestart(t *testing.T) {
	for _, tc := range []struct {
		name string
		read bool
		want int // seconds in the first response of the next process: the log has one, the others were idle
	}{{"unread", false, 2}, {"read", true, 1}} {
		t.Run(tc.name, func(t *testing.T) {
			dir, at := t.TempDir(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			var now atomic.Pointer[time.Time]
			now.Store(&at)
			process := func() (w *metriclog.Writer, addr string, stop func()) {
				o := metriclog.Options{Dir: dir, App: "shop", Logger: slog.New(slog.DiscardHandler)}
				last, err := metriclog.Last(o)
				if err != nil {
					t.Fatal(err)
				}
				c, err := collector.New(collector.Options{Now: func() time.Time { return *now.Load() }, After: last})
				if err != nil {
					t.Fatal(err)
				}
				if w, err = metriclog.New(c, o); err != nil {
					t.Fatal(err)
				}
				c.Resource("resource 0").Block("")
				page, err := prom.NewSeconds(c, prom.SecondsOptions{Log: w})
				if err != nil {
					t.Fatal(err)
				}
				server := httptest.NewUnstartedServer(page)
				plain(server, page)
				return w, server.Listener.Addr().String(), server.Close
			}
			pass := func(d time.Duration) { later := now.Load().Add(d); now.Store(&later) }

			w, addr, stop := process()
			pass(10 * time.Second)
			c := dial(t, addr)
			if c.ask(); tc.read {
				_ = c.seconds()
			} else if _, err := c.buf.Peek(1); err != nil {
				t.Fatal(err)
			}
			settled()
			linger := map[bool]int{false: 0, true: -1}[tc.read] // a reset, as if data had been unread
			if err := c.Conn.(*net.TCPConn).SetLinger(linger); err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			settled()
			stop()
			if err := errors.Join(w.Flush(), w.Close()); err != nil {
				t.Fatal(err)
			}

			w, addr, stop = process()
			defer w.Close() //nolint:errcheck // nothing is read of it
			defer stop()
			pass(time.Second)
			if got := dial(t, addr).get(); got != tc.want {
				t.Errorf("%d seconds, want %d", got, tc.want)
			}
		})
	}
}
