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

// A number stands for one resource as long as the process lives: a name that is retired, and comes back, gets another,
// and those that were there before keep theirs.
func TestNumbersAreNotUsedAgain(t *testing.T) {
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
		t.Errorf("at first %d", got)
	}
	for range 25 { // a and c are idle for longer than they are kept
		now = now.Add(time.Minute)
		c.Resource("b").Block("")
		numbers()
	}
	if got := numbers("c", "a"); !slices.Equal(got, []int64{2, 4, 5}) {
		t.Errorf("later %d", got)
	}
}

// While the past of the total is read, which takes long where there are many resources, viewers have the table and the
// last second, and get the past when it is there, without the table again.
func TestNobodyWaitsForThePast(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	f := newFeed(c, 10)
	c.Resource("a").Block("")
	now = now.Add(100 * time.Second)
	_, total := f.current()
	total.readMu.Lock() // somebody reads it
	v := &viewer{query: query{sortBy: byTrouble}}
	if m := f.message(v); len(m.Total) != 1 || m.Table == nil || m.Table.Rows[0].Name != "a" {
		t.Errorf("the viewer has %+v", m)
	}
	total.readMu.Unlock()
	for _, x := range []struct{ wanted, want int64 }{{1, 0}, {80, 79}, {80, 0}, {keptSeconds, 20}, {keptSeconds, 0}} {
		if got := total.readOlder(x.wanted); got != (x.want > 0) {
			t.Errorf("somebody who wants %d seconds finds some before: %t", x.wanted, got)
		}
		if m := f.message(v); len(m.Total) != int(x.want) || m.Table != nil || m.Fresh {
			t.Errorf("who wants %d seconds gets %d, want %d: %+v", x.wanted, len(m.Total), x.want, m)
		}
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
		if viewers := p.viewers.Held(); viewers != 1 {
			t.Error("there is no viewer")
		}
		time.Sleep(writeTimeout)
		if viewers := p.viewers.Held(); viewers != 0 {
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
