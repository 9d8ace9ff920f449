package servicetest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Framework has what the tests that are the same for all frameworks need of one, whose middleware is an M and whose handlers
// are an H.
type Framework[M, H any] struct {
	Middleware func(*collector.Collector, ...httpstat.Option) M
	Recoverer  M
	Before     func(f func()) M           // middleware that calls f first
	Handler    func(h http.HandlerFunc) H // with the framework's writer and request
	Service    func(use []M, path string, handle H) http.Handler
	Param      string // of a path, such as :id
	Panics     []Panic[H]
}

// Answer is a way to answer a request, and the status that the client gets and that is counted.
type Answer[H any] struct {
	Name   string
	Handle H
	Status int
}

// Answers sends a request for each way to answer it, those that every framework has first.
func (f Framework[M, H]) Answers(t *testing.T, own ...Answer[H]) {
	all := []Answer[H]{
		{"nothing", f.Handler(func(http.ResponseWriter, *http.Request) {}), 200},
		{"a status alone", f.Handler(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }), 202},
		{"a stream", f.Handler(func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				fmt.Fprint(w, "x")
				_ = http.NewResponseController(w).Flush()
			}
		}), 200},
		{"a deadline", f.Handler(func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				w.WriteHeader(http.StatusNotImplemented)
			}
		}), 200},
		{"another protocol", f.Handler(func(w http.ResponseWriter, _ *http.Request) {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				w.WriteHeader(http.StatusNotImplemented)
				return
			}
			Upgrade(conn, buf)
		}), 101},
	}
	for _, x := range append(all, own...) {
		t.Run(x.Name, func(t *testing.T) {
			c := NewCollector(t)
			if got := Serve(t, f.Service([]M{f.Middleware(c)}, "/", x.Handle))("GET", "/"); got != x.Status {
				t.Errorf("the client got %d, want %d", got, x.Status)
			}
			Want(t, c, map[string]string{"GET /": fmt.Sprintf("%d: 1", x.Status)})
		})
	}
}

// Panic is a way to panic. Inside and Outside are how it is counted with a recoverer there; Status and Alone are what the client
// gets with one, and without.
type Panic[H any] struct {
	Name            string
	Handle          H
	Inside, Outside string
	Status, Alone   int
}

// Aborts is a panic that recoverers let through.
func Aborts[H any](handler func(http.HandlerFunc) H) Panic[H] {
	const counted = "-: 1, exceptions: 1"
	return Panic[H]{"abort", handler(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), counted, counted, 0, 0}
}

// TestPanics tests that a panic is counted once, with the status that the client gets, whether the recoverer is inside or outside.
func (f Framework[M, H]) TestPanics(t *testing.T) {
	for _, x := range append([]Panic[H]{
		{
			"panic", f.Handler(func(http.ResponseWriter, *http.Request) { panic("boom") }),
			"500: 1, exceptions: 1", "500: 1, exceptions: 1", 500, 0,
		},
		{"after a body", f.Handler(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, "x")
			_ = http.NewResponseController(w).Flush()
			panic("boom")
		}), "202: 1, exceptions: 1", "202: 1", 202, 202},
	}, f.Panics...) {
		t.Run(x.Name, func(t *testing.T) {
			for order, want := range map[string]struct {
				counted string
				status  int
			}{
				"inside": {x.Inside, x.Status}, "outside": {x.Outside, x.Status}, "alone": {strings.Replace(x.Inside, "500: 1", "-: 1", 1), x.Alone},
			} {
				c := NewCollector(t)
				use := []M{f.Recoverer, f.Middleware(c)}
				switch order {
				case "outside":
					slices.Reverse(use)
				case "alone":
					use = []M{f.Middleware(c, httpstat.Recovered(0))}
				}
				if got := Serve(t, f.Service(use, "/", x.Handle))("GET", "/"); got != want.status {
					t.Errorf("%s: the client got %d, want %d", order, got, want.status)
				}
				Want(t, c, map[string]string{"GET /": want.counted})
			}
		})
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

// Benchmark compares a request with one that is not counted.
func (f Framework[M, H]) Benchmark(b *testing.B) {
	for name, use := range map[string][]M{"bare": nil, "counted": {f.Middleware(NewCollector(b))}} {
		h := f.Service(use, "/users/"+f.Param, f.Handler(func(http.ResponseWriter, *http.Request) {}))
		r := httptest.NewRequest("GET", "/users/7", nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			w := httptest.NewRecorder()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}
