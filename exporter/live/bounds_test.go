package live

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A number stands for one resource as long as the process lives: a name that is retired, and comes back, gets another, and those
// that were there before keep theirs.
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
		m, _, _ := f.present()
		m.read(c)
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

// While the past of the total is read, which takes long where there are many resources, nobody waits for it but who reads it:
// viewers have the table and the last second, and get the past when it is there.
func TestNobodyWaitsForThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			c.Resource("a").Block("")
			time.Sleep(time.Second)
		}
		m, total, _ := p.feed.present()
		total.until(m.open)
		total.filler = true // somebody reads it
		rec := &told{ResponseRecorder: httptest.NewRecorder()}
		go p.ServeHTTP(rec, httptest.NewRequest("GET", "/live/stream", nil))
		synctest.Wait()
		if body := rec.body(); strings.Count(body, "data: ") != 1 || !strings.Contains(body, `"a"`) {
			t.Errorf("the viewer has\n%s", body)
		}
		time.Sleep(1500 * time.Millisecond)
		if body := rec.body(); strings.Count(body, "data: ") < 2 {
			t.Errorf("later the viewer has\n%s", body)
		}
		before := strings.Count(rec.body(), "data: ")
		total.readBefore(total.begin, total.filled)
		synctest.Wait()
		messages := strings.Split(rec.body(), "data: ")[1:]
		if len(messages) != before+1 || strings.Count(messages[before], "],[") < 25 {
			t.Errorf("when it is read the viewer has\n%s", messages)
		}
		p.Close()
		synctest.Wait()
	})
}

// told is a response that is looked at while it is written.
type told struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (w *told) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseRecorder.Write(b)
}

func (w *told) body() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Body.String()
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
