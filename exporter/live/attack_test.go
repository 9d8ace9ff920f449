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

// However many viewers there are, with whatever positions, a second of all resources and of the total is read once, and
// sorted once for each column, and so are the details of a resource.
func TestSecondsAreReadOnce(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	f := newFeed(c, 50)
	for range 5 {
		for i := range 100 {
			c.Resource(fmt.Sprint("resource ", i)).Block("")
		}
		now = now.Add(time.Second)
	}
	first := &viewer{query: query{sortBy: "block", resourceName: "resource 5"}}
	m := f.message(first)
	order := first.sentTable.sorted("block", f.columns)
	for i := range int64(50) {
		v := &viewer{query: query{sortBy: "block", resourceName: "resource 5"}, position: position{first.epoch, first.first - i, first.last - i%7}}
		again := f.message(v)
		if v.sentTable != first.sentTable || &v.sentTable.sorted("block", f.columns)[0] != &order[0] || &v.sentDetails[0] != &first.sentDetails[0] {
			t.Fatalf("viewer %d has something of its own", i)
		}
		for _, second := range again.Total {
			if !slices.ContainsFunc(m.Total, func(x []int64) bool { return &x[0] == &second[0] }) {
				t.Fatalf("viewer %d has a second of its own: %v", i, second)
			}
		}
	}
}

// What viewers ask for by names and ranges that are made up is kept of some only.
func TestWhatIsKeptIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	f := newFeed(c, 50)
	const resources = 300
	for i := range resources {
		c.Resource(fmt.Sprint("resource ", i)).Block("")
	}
	now = now.Add(100 * time.Second)
	for i := range resources {
		v := &viewer{query: query{sortBy: "block", resourceName: fmt.Sprint("resource ", i), rangeFirst: now.Unix() - 90 + int64(i%80), rangeEnd: now.Unix()}}
		if m := f.message(v); len(m.Resource) != 100 || len(m.Details) == 0 || m.Table.Resources != resources {
			t.Fatalf("viewer %d: %d seconds, %s, %+v", i, len(m.Resource), m.Details, m.Table)
		}
	}
	// A stream whose range is not kept any more does not have it read again.
	v := &viewer{query: query{sortBy: "block", rangeFirst: now.Unix() - 50, rangeEnd: now.Unix() - 40}}
	for i := range 3 {
		if m := f.message(v); (m.Table != nil) != (i == 0) {
			t.Errorf("message %d has the table %+v", i, m.Table)
		}
		f.ranges = nil
	}
	gone := &viewer{query: query{sortBy: "block", rangeFirst: 50, rangeEnd: 60}}
	for i := range 3 {
		if m := f.message(gone); (m.Table != nil) != (i == 0) {
			t.Errorf("message %d has the table %+v, of seconds that are not kept", i, m.Table)
		}
	}
	for i := range maxRanges {
		f.message(&viewer{query: query{sortBy: "block", rangeFirst: now.Unix() - 90 + int64(i), rangeEnd: now.Unix()}})
	}
	if len(f.ranges) != maxRanges {
		t.Errorf("%d ranges are kept", len(f.ranges))
	}
	var b budget
	for i := range 3000 {
		if i%1000 == 0 {
			// So that those before have saved what they used, but for one that asks much.
			time.Sleep(20 * time.Millisecond)
			b.limiterOf("busy").ReserveN(time.Now(), burst)
		}
		if _, err := b.wait(t.Context(), fmt.Sprint("host ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.hosts.Len(); n > 1001 {
		t.Errorf("%d hosts are known", n)
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
				path := []string{"/live/seconds", "/live/seconds?resource=resource+7"}[i%2]
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
		if n := answers.Load(); n < 1000 || n > (burst+20*budgetPerSecond)/minCost {
			t.Errorf("%d answers in ten seconds", n)
		}
	})
}

// Where there is no room for another stream, the newest of the host that has the most gives way to a host that has
// fewer.
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
		said := map[string]*atomic.Int64{"192.0.2.66": {}, "10.0.0.1": {}}
		open := func(host string) *rupturable {
			rec := &rupturable{ResponseRecorder: httptest.NewRecorder()}
			go func() {
				r := httptest.NewRequest("GET", "/live/stream", nil)
				r.RemoteAddr = host + ":1"
				running[host].Add(1)
				p.ServeHTTP(rec, r)
				running[host].Add(-1)
				if strings.HasSuffix(rec.text(), "event: full\ndata: all 50 places for viewers are taken, and this page, the newest of its host, gave way\n\n") {
					said[host].Add(1)
				}
			}()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			return rec
		}
		for i := range 60 {
			rec := open("192.0.2.66")
			const refused = "retry: 10000\nevent: full\ndata: all 50 places for viewers are taken\n\n"
			if got := rec.text(); (got == refused) != (i >= 50) {
				t.Errorf("stream %d begins with %.100q", i, got)
			}
		}
		if n := running["192.0.2.66"].Load(); n != 50 {
			t.Errorf("%d streams, want 50", n)
		}
		for range 3 {
			if rec := open("10.0.0.1"); !strings.Contains(rec.text(), "data: {") {
				t.Errorf("another host gets %.100q", rec.text())
			}
		}
		if theirs, ours := running["192.0.2.66"].Load(), running["10.0.0.1"].Load(); theirs != 47 || ours != 3 {
			t.Errorf("%d and %d streams, want 47 and 3", theirs, ours)
		}
		// Why they ended.
		if theirs, ours := said["192.0.2.66"].Load(), said["10.0.0.1"].Load(); theirs != 3 || ours != 0 {
			t.Errorf("%d and %d streams say that they gave way, want 3 and 0", theirs, ours)
		}
		p.Close()
		synctest.Wait()
	})
}

// rupturable is a response whose connection takes deadlines, whose writes never wait, and that is read while it is
// written.
type rupturable struct {
	*httptest.ResponseRecorder
	writing sync.Mutex
}

func (r *rupturable) Write(b []byte) (int, error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.ResponseRecorder.Write(b)
}

// text returns what has been written so far.
func (r *rupturable) text() string {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.Body.String()
}

func (*rupturable) SetWriteDeadline(time.Time) error { return nil }

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
		if n := p.viewers.Held(); n != 51 {
			t.Errorf("%d viewers, want 51", n)
		}
		go func() { _, _ = io.Copy(io.Discard, lines) }()
		time.Sleep(2 * writeTimeout)
		if n := p.viewers.Held(); n != 1 {
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
