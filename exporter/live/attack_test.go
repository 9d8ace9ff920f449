package live

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Fifty viewers follow ten thousand resources: what is the same for all of them is encoded once, and positions that are made up
// make no other encodings.
func TestSecondsAreEncodedOnce(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	f := newFeed(c, 50)
	for second := range 5 {
		for i := range 1000 {
			if i%5 <= second { // new names in each second
				c.Resource(fmt.Sprint("resource ", i)).Block("")
			}
		}
		now = now.Add(time.Second)
	}
	q := query{table: table{by: "block"}, resource: "resource 5"}
	f.fill(0)
	long := func(q query, p position) (list []piece, after position) {
		all, after := f.message(q, p, position.String)
		for _, x := range all {
			if len(x.plain) > 100 {
				list = append(list, x)
			}
		}
		return list, after
	}
	first, at := long(q, position{})
	if len(first) != 5 { // the beginning, the past of the total and of the resource, the rows, their names
		t.Errorf("a message has %d long parts", len(first))
	}
	for i := range 50 {
		again, _ := long(q, position{at.first - int64(i), at.last - int64(i%7), at.epoch, int64(i)})
		for _, x := range again {
			if !slices.ContainsFunc(first, func(y piece) bool { return &x.plain[0] == &y.plain[0] && &x.zipped[0] == &y.zipped[0] }) && len(x.plain) > 200 {
				t.Fatalf("%d: encoded again: %s", i, x.plain)
			}
		}
	}
}

// A client that asks again and again waits for itself: others have their answers, and the service its processors.
func TestPollsInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for i := range 100 {
			c.Resource(fmt.Sprint("resource ", i)).Block("")
		}
		time.Sleep(3 * time.Second)
		ask := func(path, from string) int {
			r := httptest.NewRequest("GET", path, nil)
			r.RemoteAddr = from + ":1"
			rec := httptest.NewRecorder()
			p.ServeHTTP(rec, r)
			return rec.Code
		}
		var answers atomic.Int64
		var over atomic.Bool
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				path := []string{"/live/seconds", "/live/resource?name=resource+7"}[i%2]
				for !over.Load() {
					if ask(path, "192.0.2.66") == http.StatusOK {
						answers.Add(1)
					}
				}
			})
		}
		for range 10 {
			time.Sleep(time.Second)
			began := time.Now()
			if code := ask("/live/seconds", "10.0.0.1"); code != http.StatusOK || time.Since(began) > time.Second {
				t.Errorf("%d for another viewer after %v", code, time.Since(began))
			}
		}
		over.Store(true)
		all.Wait()
		if n := answers.Load(); n > 10*100*maxAnswers+100 {
			t.Errorf("%d answers in ten seconds", n)
		}
	})
}

// Where there is no room for another stream, the newest of the host that has the most gives way to a host that has fewer.
func TestStreamsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(c, Options{MaxViewers: 50})
		if err != nil {
			t.Fatal(err)
		}
		running := map[string]*atomic.Int64{"192.0.2.66": {}, "10.0.0.1": {}}
		open := func(host string) *httptest.ResponseRecorder {
			rec := httptest.NewRecorder()
			go func() {
				r := httptest.NewRequest("GET", "/live/stream", nil)
				r.RemoteAddr = host + ":1"
				running[host].Add(1)
				p.ServeHTTP(rupturable{rec}, r)
				running[host].Add(-1)
			}()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			return rec
		}
		for range 60 {
			open("192.0.2.66")
		}
		if n := running["192.0.2.66"].Load(); n != 50 {
			t.Errorf("%d streams, want 50", n)
		}
		for range 3 {
			if rec := open("10.0.0.1"); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "data: ") {
				t.Errorf("another host gets %d", rec.Code)
			}
		}
		if theirs, ours := running["192.0.2.66"].Load(), running["10.0.0.1"].Load(); theirs != 47 || ours != 3 {
			t.Errorf("%d and %d streams, want 47 and 3", theirs, ours)
		}
		p.Close()
		synctest.Wait()
	})
}

// rupturable is a response whose connection takes deadlines, and whose writes never wait.
type rupturable struct{ *httptest.ResponseRecorder }

func (rupturable) SetWriteDeadline(time.Time) error { return nil }

// Fifty viewers that do not read are disconnected, and hold up nobody meanwhile.
func TestSlowViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := &pipe{conn: make(chan net.Conn)}
		server := &http.Server{Handler: p}
		go func() { _ = server.Serve(l) }()
		dial := func() net.Conn {
			viewer, conn := net.Pipe()
			l.conn <- conn
			if _, err := io.WriteString(viewer, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			return viewer
		}
		for range 50 {
			defer dial().Close() //nolint:errcheck // it is not read
		}
		reader := dial()
		lines := bufio.NewReader(reader)
		for i := 0; i < 5; {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "data: ") {
				i++
			}
		}
		if _, n := p.viewers.Held(); n != 51 {
			t.Errorf("%d viewers, want 51", n)
		}
		go func() { _, _ = io.Copy(io.Discard, lines) }()
		time.Sleep(2 * writeTimeout)
		if _, n := p.viewers.Held(); n != 1 {
			t.Errorf("%d viewers later, want the one that reads", n)
		}
		p.Close()
		_ = server.Close()
		_ = reader.Close()
	})
}

// A request announces a body and does not send it.
func TestNoPartWaitsForABody(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	defer server.Close()
	for _, path := range []string{"/", "/app.js", "/seconds", "/stream", "/resource?name=a"} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 400 ") {
			t.Errorf("%s: %v, %q", path, err, b)
		}
		_ = conn.Close()
	}
}
