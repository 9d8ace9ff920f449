// Package adapters_test tests the adapters for HTTP frameworks. This file has the tests that all frameworks share, and
// each framework has a file for its special cases. The package is in a separate module, because the module of an
// adapter must not require the frameworks of other adapters.
package adapters_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// frameworks lists all frameworks that have an adapter.
var frameworks = []struct {
	name string
	tests
}{
	{"gin", ginFramework},
	{"echo", echoFramework},
	{"echo v5", echoV5Framework},
	{"chi", chiFramework},
}

// The interface tests has the tests that are the same for all frameworks. The type framework implements it.
type tests interface {
	testAnswers(t *testing.T)
	testLimits(t *testing.T)
	testNilCollector(t *testing.T)
}

func TestAnswers(t *testing.T) {
	for _, f := range frameworks {
		t.Run(f.name, f.testAnswers)
	}
}

func TestLimits(t *testing.T) {
	for _, f := range frameworks {
		t.Run(f.name, f.testLimits)
	}
}

func TestNilCollector(t *testing.T) {
	for _, f := range frameworks {
		t.Run(f.name, f.testNilCollector)
	}
}

// framework describes a web framework for the tests. M is the framework's type of middleware, and H is its type of
// handlers.
type framework[M, H any] struct {
	middleware func(*collector.Collector, ...httpstat.Option) M
	recoverer  M
	before     func(f func()) M           // returns middleware that calls the function f before the handler
	handler    func(h http.HandlerFunc) H // returns a handler that runs h with the framework's writer and request
	service    func(use []M, path string, handle H) http.Handler
	param      string      // the parameter named id, as patterns of the framework write it: :id or {id}
	own        []answer[H] // answers that only this framework has, or that replace common answers with the same name
}

// answer is a way to respond to a request.
type answer[H any] struct {
	name   string
	handle H
	status int // status that the client gets if the service recovers panics
	panics *panics
}

// panics describes an answer with a handler that panics. A recoverer is middleware of the framework that recovers
// panics. The fields inside and outside are the expected counts if the middleware under test runs inside or outside of
// a recoverer. The field alone is the status that the client gets without a recoverer, or 0 if there is no response.
type panics struct {
	inside, outside string
	alone           int
}

// testAnswers tests each answer of the framework, and each common answer that the framework does not replace. The
// middleware runs inside of a recoverer, outside of a recoverer, and without a recoverer. Each request must be counted
// once, and the client must get the expected status.
func (f framework[M, H]) testAnswers(t *testing.T) {
	const panicked, aborted = "500: 1, exceptions: 1", "-: 1, exceptions: 1"
	all := slices.Clone(f.own)
	add := func(name string, status int, p *panics, handle http.HandlerFunc) {
		if !slices.ContainsFunc(f.own, func(x answer[H]) bool { return x.name == name }) {
			all = append(all, answer[H]{name, f.handler(handle), status, p})
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
	add("panic", 500, &panics{panicked, panicked, 0}, func(http.ResponseWriter, *http.Request) { panic("boom") })
	add(
		"panic after a body",
		202,
		&panics{"202: 1, exceptions: 1", "202: 1", 202},
		func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			stream(w)
			panic("boom")
		},
	)
	add(
		"abort",
		0,
		&panics{aborted, aborted, 0},
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	)
	for _, x := range all {
		// An answer that does not panic is counted with its status in all three orders below. Without a recoverer, a
		// panic closes the connection, and the call has no code.
		counted := fmt.Sprintf("%d: 1", x.status)
		p := cmp.Or(x.panics, &panics{counted, counted, x.status})
		for _, order := range []struct {
			name    string
			use     func(*collector.Collector) []M
			counted string
			status  int
		}{
			{
				"inside", func(c *collector.Collector) []M { return []M{f.recoverer, f.middleware(c)} }, p.inside,
				x.status,
			},
			{
				"outside", func(c *collector.Collector) []M { return []M{f.middleware(c), f.recoverer} }, p.outside,
				x.status,
			},
			{
				"alone", func(c *collector.Collector) []M { return []M{f.middleware(c, httpstat.Recovered(0))} },
				strings.Replace(p.inside, panicked, aborted, 1), p.alone,
			},
		} {
			t.Run(x.name+"/"+order.name, func(t *testing.T) {
				c := newCollector(t)
				if got := serve(t, f.service(order.use(c), "/", x.handle))("GET", "/"); got != order.status {
					t.Errorf("the client got %d, want %d", got, order.status)
				}
				wantCounted(t, c, map[string]string{"GET /": order.counted})
			})
		}
	}
}

// testLimits tests that a limit on a route refuses requests before inner handlers run. It also tests that the options
// of httpstat work.
func (f framework[M, H]) testLimits(t *testing.T) {
	c, path := newCollector(t), "/api/users/"+f.param
	if err := c.SetLimits([]collector.Limit{{Resource: "GET " + path, Count: 0, Origin: "bot"}}); err != nil {
		t.Fatal(err)
	}
	client := func(r *http.Request) string { return r.URL.Query().Get("client") }
	m := f.middleware(c, httpstat.Origin(client),
		httpstat.Skip(func(r *http.Request) bool { return client(r) == "probe" }),
		httpstat.Exception(func(status int) bool { return status == http.StatusTeapot }))
	ran := 0
	send := serve(
		t,
		f.service([]M{m, f.before(func() { ran++ })}, path, f.handler(func(w http.ResponseWriter, r *http.Request) {
			if client(r) == "probe" {
				return
			}
			_, below, _ := c.Enter(r.Context(), "below")
			below.Exit(nil)
			w.WriteHeader(http.StatusTeapot)
		})),
	)
	for who, status := range map[string]int{"bot": 429, "": 418, "probe": 200} {
		if got := send("GET", "/api/users/7?client="+who); got != status {
			t.Errorf("%q: %d", who, got)
		}
	}
	if ran != 2 {
		t.Errorf("%d requests reached the inner middleware, want 2", ran)
	}
	wantCounted(t, c, map[string]string{"GET " + path: "418: 1, blocked: 1, exceptions: 1", "below": "-: 1"})
	if node := c.Tree().Children()[0]; node.Name() != "http" || len(node.Children()) != 1 ||
		len(node.Children()[0].Children()) != 1 {
		t.Errorf("the tree is not http > GET %s > below", path)
	}
}

// testNilCollector tests that the middleware has no effect with a nil Collector.
func (f framework[M, H]) testNilCollector(t *testing.T) {
	teapot := f.handler(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if got := serve(t, f.service([]M{f.middleware(nil)}, "/", teapot))("GET", "/"); got != http.StatusTeapot {
		t.Error(got)
	}
}
