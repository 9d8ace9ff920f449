package live

import (
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A row number identifies one resource for the lifetime of the process. A retired name that is used again gets a new
// number, and other resources keep their numbers.
func TestNumbersAreNotReused(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }, RetireAfter: 20 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	f := newFeed(c, 10)
	numbers := func(names ...string) (list []int64) {
		t.Helper()
		for _, name := range names {
			c.Resource(name).Block("")
		}
		now = now.Add(time.Second)
		m, _ := f.current()
		for i := range m.rows {
			list = append(list, m.rows[i].number)
		}
		return list
	}
	if got := numbers("a", "b", "c"); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("before retirement: %d", got)
	}
	for range 25 { // a and c are idle for longer than RetireAfter
		now = now.Add(time.Minute)
		c.Resource("b").Block("")
		numbers()
	}
	if got := numbers("c", "a"); !slices.Equal(got, []int64{2, 4, 5}) {
		t.Errorf("after retirement: %d", got)
	}
}

// Reading the history of the total takes long with many resources. Meanwhile viewers receive the table and the last
// second. Later they receive the history, without the table.
func TestFirstMessageDoesNotWaitForHistory(t *testing.T) {
	f, c, now := newTestFeed(t, 10)
	c.Resource("a").Block("")
	*now = now.Add(100 * time.Second)
	_, total := f.current()
	total.readMu.Lock() // as if the history was being read
	v := &viewer{query: query{sortBy: byTrouble}}
	if m := f.message(v); len(m.Total) != 1 || m.Table == nil || m.Table.Rows[0].Name != "a" {
		t.Errorf("while the history is read, the viewer receives %+v", m)
	}
	total.readMu.Unlock()
	for _, x := range []struct{ wanted, want int64 }{{1, 0}, {80, 79}, {80, 0}, {keptSeconds, 20}, {keptSeconds, 0}} {
		if got := total.readOlder(x.wanted); got != (x.want > 0) {
			t.Errorf("readOlder(%d) = %t", x.wanted, got)
		}
		if m := f.message(v); len(m.Total) != int(x.want) || m.Table != nil || m.Fresh {
			t.Errorf("after readOlder(%d): got %d seconds, want %d: %+v", x.wanted, len(m.Total), x.want, m)
		}
	}
}

// A viewer that stops reading without closing its connection loses its slot.
func TestStalledViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newTestPage(t, Options{MaxViewers: 1})
		viewer, conn := net.Pipe()
		l := &pipe{conn: make(chan net.Conn, 1)}
		l.conn <- conn
		server := &http.Server{Handler: p}
		go func() { _ = server.Serve(l) }()
		if _, err := io.WriteString(viewer, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(writeTimeout / 2)
		if viewers := p.viewers.Held(); viewers != 1 {
			t.Error("the viewer has no slot")
		}
		time.Sleep(writeTimeout)
		if viewers := p.viewers.Held(); viewers != 0 {
			t.Error("the viewer keeps its slot")
		}
		p.Close()
		_ = server.Close()
		_ = viewer.Close()
	})
}

// pipe is a Listener whose connections arrive through a channel, without a network.
type pipe struct{ conn chan net.Conn }

func (l *pipe) Accept() (net.Conn, error) {
	if c, ok := <-l.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l *pipe) Close() error   { close(l.conn); return nil }
func (l *pipe) Addr() net.Addr { return &net.UnixAddr{} }
