// Package servicetest has what the tests of adapters for HTTP frameworks share: a real server, how its requests were counted, and the
// tests that are the same for all of them.
package servicetest

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// NewCollector makes a Collector without options.
func NewCollector(t testing.TB) *collector.Collector {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Counted says how the requests of each resource were answered, when all have ended: "200: 2, none: 1, blocked: 1, 1 exception".
func Counted(t testing.TB, c *collector.Collector) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, r := range c.Seal().Resources {
		for deadline := time.Now().Add(10 * time.Second); r.InFlight() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d in flight", r.Name(), r.InFlight())
			}
		}
		var list []string
		for code, n := range r.View().Codes() {
			if n > 0 {
				list = append(list, fmt.Sprintf("%s: %d", max(code.String(), "-"), n))
			}
		}
		total := r.Snapshot(nil).Total
		if total.Block > 0 {
			list = append(list, fmt.Sprintf("blocked: %d", total.Block))
		}
		if total.Exception > 0 {
			list = append(list, fmt.Sprintf("exceptions: %d", total.Exception))
		}
		got[r.Name()] = strings.Join(list, ", ")
	}
	return got
}

// Want compares what Counted says.
func Want(t testing.TB, c *collector.Collector, want map[string]string) {
	t.Helper()
	if got := Counted(t, c); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// Serve starts a server and returns what sends a request, and says how it was answered; 0 is not at all.
func Serve(t testing.TB, h http.Handler) func(method, path string) int {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return func(method, path string) int {
		req, err := http.NewRequest(method, srv.URL+path, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusSwitchingProtocols {
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		return resp.StatusCode
	}
}

// Framework has what the tests that are the same for all frameworks need of one, whose middleware is an M and whose handlers
// are an H.
type Framework[M, H any] struct {
	Middleware func(*collector.Collector, ...httpstat.Option) M
	Recoverer  M
	Before     func(f func()) M           // middleware that calls f first
	Handler    func(h http.HandlerFunc) H // with the framework's writer and request
	Service    func(use []M, path string, handle H) http.Handler
	Param      string // of a path, such as :id
}

// Answer is a way to answer a request.
type Answer[H any] struct {
	Name   string
	Handle H
	Status int // that the client gets where there is a recoverer
	Panic  *Panic
}

// Panic is what more there is to say of an answer whose handler panics: how it is counted with the middleware inside of a recoverer and
// outside, and the status that the client gets without one, 0 for none.
type Panic struct {
	Inside, Outside string
	Alone           int
}

// TestAnswers sends requests for each way to answer, those that every framework has, unless one of its own has that name, and its own.
// Each is counted once, with the status that the client gets, whether the recoverer is inside or outside, or there is none.
func (f Framework[M, H]) TestAnswers(t *testing.T, own ...Answer[H]) {
	const panicked, aborted = "500: 1, exceptions: 1", "-: 1, exceptions: 1"
	all := own
	add := func(name string, status int, p *Panic, handle http.HandlerFunc) {
		if !slices.ContainsFunc(own, func(x Answer[H]) bool { return x.Name == name }) {
			all = append(all, Answer[H]{name, f.Handler(handle), status, p})
		}
	}
	stream := func(w http.ResponseWriter) {
		for range 3 {
			fmt.Fprint(w, "x")
			_ = http.NewResponseController(w).Flush()
		}
	}
	add("nothing", 200, nil, func(http.ResponseWriter, *http.Request) {})
	add("a status alone", 202, nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	add("a stream", 200, nil, func(w http.ResponseWriter, _ *http.Request) { stream(w) })
	add("a deadline", 200, nil, func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			w.WriteHeader(http.StatusNotImplemented)
		}
	})
	add("another protocol", 101, nil, func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		defer conn.Close()
		fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = buf.Flush()
	})
	add("panic", 500, &Panic{panicked, panicked, 0}, func(http.ResponseWriter, *http.Request) { panic("boom") })
	add("panic after a body", 202, &Panic{"202: 1, exceptions: 1", "202: 1", 202}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		stream(w)
		panic("boom")
	})
	add("abort", 0, &Panic{aborted, aborted, 0}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, x := range all {
		// What does not panic is counted as it is answered, whatever stands around it. Alone, nobody makes 500 of a panic: the connection
		// is closed, and there is no code.
		counted := fmt.Sprintf("%d: 1", x.Status)
		p := cmp.Or(x.Panic, &Panic{counted, counted, x.Status})
		for _, order := range []struct {
			name    string
			use     func(*collector.Collector) []M
			counted string
			status  int
		}{
			{"inside", func(c *collector.Collector) []M { return []M{f.Recoverer, f.Middleware(c)} }, p.Inside, x.Status},
			{"outside", func(c *collector.Collector) []M { return []M{f.Middleware(c), f.Recoverer} }, p.Outside, x.Status},
			{"alone", func(c *collector.Collector) []M { return []M{f.Middleware(c, httpstat.Recovered(0))} }, strings.Replace(p.Inside, panicked, aborted, 1), p.Alone},
		} {
			t.Run(x.Name+"/"+order.name, func(t *testing.T) {
				c := NewCollector(t)
				if got := Serve(t, f.Service(order.use(c), "/", x.Handle))("GET", "/"); got != order.status {
					t.Errorf("the client got %d, want %d", got, order.status)
				}
				Want(t, c, map[string]string{"GET /": order.counted})
			})
		}
	}
}

// TestLimits tests that a limit on a route refuses before anything behind runs, and the options of httpstat hold.
func (f Framework[M, H]) TestLimits(t *testing.T) {
	c, path := NewCollector(t), "/api/users/"+f.Param
	if err := c.SetLimits([]collector.Limit{{Resource: "GET " + path, Count: 0, Origin: "bot"}}); err != nil {
		t.Fatal(err)
	}
	client := func(r *http.Request) string { return r.URL.Query().Get("client") }
	m := f.Middleware(c, httpstat.Origin(client),
		httpstat.Skip(func(r *http.Request) bool { return client(r) == "probe" }),
		httpstat.Exception(func(status int) bool { return status == http.StatusTeapot }))
	ran := 0
	send := Serve(t, f.Service([]M{m, f.Before(func() { ran++ })}, path, f.Handler(func(w http.ResponseWriter, r *http.Request) {
		if client(r) == "probe" {
			return
		}
		_, below, _ := c.Enter(r.Context(), "below")
		below.Exit(nil)
		w.WriteHeader(http.StatusTeapot)
	})))
	for who, status := range map[string]int{"bot": 429, "": 418, "probe": 200} {
		if got := send("GET", "/api/users/7?client="+who); got != status {
			t.Errorf("%q: %d", who, got)
		}
	}
	if ran != 2 {
		t.Errorf("%d requests reached the handlers", ran)
	}
	Want(t, c, map[string]string{"GET " + path: "418: 1, blocked: 1, exceptions: 1", "below": "-: 1"})
	if node := c.Tree().Children()[0]; node.Name() != "http" || len(node.Children()) != 1 || len(node.Children()[0].Children()) != 1 {
		t.Errorf("the tree is not http > GET %s > below", path)
	}
}

// TestNilCollector tests that with a nil Collector the middleware is not there.
func (f Framework[M, H]) TestNilCollector(t *testing.T) {
	teapot := f.Handler(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if got := Serve(t, f.Service([]M{f.Middleware(nil)}, "/", teapot))("GET", "/"); got != http.StatusTeapot {
		t.Error(got)
	}
}
