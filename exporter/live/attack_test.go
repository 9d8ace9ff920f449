package live

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// newTestPage returns a Page and its Collector, both with the time of the synctest bubble.
func newTestPage(t *testing.T, o Options) (*Page, *collector.Collector) {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

// A host that polls in a loop waits for its own budget. Viewers on other hosts do not wait.
func TestPollsInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newTestPage(t, Options{})
		defer p.Close()
		for i := range 100 {
			c.Resource(fmt.Sprint("resource ", i)).Block("")
		}
		time.Sleep(3 * time.Second)
		poll := func(path, from string) (status int) {
			r := httptest.NewRequest("GET", path, nil)
			r.RemoteAddr = from + ":1"
			rec := httptest.NewRecorder()
			p.ServeHTTP(rec, r)
			return rec.Code
		}
		var responses atomic.Int64
		var done atomic.Bool
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				path := []string{"/live/seconds", "/live/seconds?resource=resource+7"}[i%2]
				for !done.Load() {
					if poll(path, "192.0.2.66") == http.StatusOK {
						responses.Add(1)
					}
				}
			})
		}
		for range 10 {
			time.Sleep(time.Second)
			began := time.Now()
			if code := poll("/live/seconds", "10.0.0.1"); code != http.StatusOK || time.Since(began) > time.Second {
				t.Errorf("status %d for another host after %v", code, time.Since(began))
			}
		}
		done.Store(true)
		all.Wait()
		// Requests that wait at the end of the loop are served within maxWait, so the bound covers twenty seconds.
		if n := responses.Load(); n < 1000 || n > (burst+20*budgetPerSecond)/minCost {
			t.Errorf("%d responses in ten seconds", n)
		}
	})
}

// At the maximum number of streams, the newest stream of the host with the most streams is evicted for a host with
// fewer.
func TestStreamsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newTestPage(t, Options{MaxViewers: 50})
		running := map[string]*atomic.Int64{"192.0.2.66": {}, "10.0.0.1": {}}
		evicted := map[string]*atomic.Int64{"192.0.2.66": {}, "10.0.0.1": {}}
		open := func(host string) *liveRecorder {
			rec := &liveRecorder{ResponseRecorder: httptest.NewRecorder()}
			go func() {
				r := httptest.NewRequest("GET", "/live/stream", nil)
				r.RemoteAddr = host + ":1"
				running[host].Add(1)
				p.ServeHTTP(rec, r)
				running[host].Add(-1)
				const reason = "event: full\ndata: all 50 places for viewers are taken, " +
					"and this page, the newest of its host, gave way\n\n"
				if strings.HasSuffix(rec.text(), reason) {
					evicted[host].Add(1)
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
				t.Errorf("another host receives %.100q", rec.text())
			}
		}
		if theirs, ours := running["192.0.2.66"].Load(), running["10.0.0.1"].Load(); theirs != 47 || ours != 3 {
			t.Errorf("%d and %d streams, want 47 and 3", theirs, ours)
		}
		if theirs, ours := evicted["192.0.2.66"].Load(), evicted["10.0.0.1"].Load(); theirs != 3 || ours != 0 {
			t.Errorf("%d and %d streams report their eviction, want 3 and 0", theirs, ours)
		}
		p.Close()
		synctest.Wait()
	})
}

// Two hundred hosts open fifty streams each. Those in excess end immediately: they wait for no budget, and use no
// compressor. Polls in excess of a host that has used up its budget do not wait, either.
func TestRequestsInExcessEndFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, hosts, each = 100, 200, 50
		p, _ := newTestPage(t, Options{MaxViewers: most})
		time.Sleep(2 * time.Second)
		var running, refused, compressed atomic.Int64
		open := func(path, host string) {
			rec := &liveRecorder{ResponseRecorder: httptest.NewRecorder()}
			r := httptest.NewRequest("GET", path, nil)
			r.RemoteAddr = host + ":1"
			r.Header.Set("Accept-Encoding", "gzip")
			running.Add(1)
			p.ServeHTTP(rec, r)
			running.Add(-1)
			if strings.Contains(rec.text(), "event: full") {
				refused.Add(1)
			}
			if rec.Header().Get("Content-Encoding") != "" {
				compressed.Add(1)
			}
		}
		for i := range hosts * each {
			go open("/live/stream", fmt.Sprint("198.51.100.", i%hosts))
			if i%hosts == hosts-1 { // no host gets several streams first, which would be evicted for others
				synctest.Wait()
			}
		}
		if running.Load() != most || refused.Load() != hosts*each-most || compressed.Load() > 0 {
			t.Errorf("%d streams, want %d; %d are refused, %d of them compressed",
				running.Load(), most, refused.Load(), compressed.Load())
		}
		for range 5000 {
			go open("/live/seconds", "192.0.2.66")
		}
		synctest.Wait()
		if n := running.Load(); n > 2*most {
			t.Errorf("%d streams and polls run or wait, want at most %d", n, 2*most)
		}
		p.Close()
		time.Sleep(maxWait)
		synctest.Wait()
	})
}

// liveRecorder is a ResponseRecorder that can be read while the response is being written. It accepts write deadlines,
// but its writes never block.
type liveRecorder struct {
	*httptest.ResponseRecorder
	mu sync.Mutex // guards the body
}

func (r *liveRecorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.Write(b)
}

// text returns the body so far.
func (r *liveRecorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Body.String()
}

func (*liveRecorder) SetWriteDeadline(time.Time) error { return nil }

// Fifty viewers that do not read are disconnected. Until then another viewer receives its events.
func TestSlowViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newTestPage(t, Options{})
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
			defer dial().Close() //nolint:errcheck // nothing reads from it
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
			t.Errorf("%d viewers after the timeout, want 1", n)
		}
		p.Close()
		_ = server.Close()
		_ = reader.Close()
	})
}

// A request that announces a body is refused immediately, although the body never arrives.
func TestRequestBodyIsRefused(t *testing.T) {
	p, _ := newTestPage(t, Options{})
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
