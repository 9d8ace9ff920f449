package live

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Names are bounded: beyond the limit numbering restarts, and viewers reset.
func TestNumberingRestarts(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	f := newFeed(c, 10)
	c.Resource("a").Block("")
	now = now.Add(time.Second)
	at := f.after(position{}).now
	for i := range maxNames {
		f.number(strconv.Itoa(i))
	}
	c.Resource("b").Block("")
	now = now.Add(time.Second)
	if n := f.after(at); !n.fresh || n.now.epoch == at.epoch || n.columns == nil || len(n.names) != 1 || string(n.names[0].plain) != `"","b"` || len(n.events) != 1 {
		t.Errorf("fresh %v, epoch %d after %d, names %s, %d seconds", n.fresh, n.now.epoch, at.epoch, n.names, len(n.events))
	}
}

// A viewer that stops reading without closing loses its slot.
func TestStalledViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(c, Options{MaxViewers: 1})
		if err != nil {
			t.Fatal(err)
		}
		viewer, conn := net.Pipe()
		l := &pipe{conn: make(chan net.Conn, 1)}
		l.conn <- conn
		server := &http.Server{Handler: p}
		go func() { _ = server.Serve(l) }()
		if _, err := io.WriteString(viewer, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(writeTimeout / 2)
		if _, viewers := p.viewers.Held(); viewers != 1 {
			t.Error("there is no viewer")
		}
		time.Sleep(writeTimeout)
		if _, viewers := p.viewers.Held(); viewers != 0 {
			t.Error("the viewer keeps its place")
		}
		p.Close()
		_ = server.Close()
		_ = viewer.Close()
	})
}

// A pipe listens for connections that are made without a network.
type pipe struct{ conn chan net.Conn }

func (l *pipe) Accept() (net.Conn, error) {
	if c, ok := <-l.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l *pipe) Close() error   { close(l.conn); return nil }
func (l *pipe) Addr() net.Addr { return &net.UnixAddr{} }
