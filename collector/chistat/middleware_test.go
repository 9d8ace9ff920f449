package chistat_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/chistat"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/collector/internal/servicetest"
)

// recoverer is chi's, with a log that keeps quiet.
func recoverer(next http.Handler) http.Handler {
	return middleware.RequestLogger(quiet{})(middleware.Recoverer(next))
}

type quiet struct{}

func (quiet) NewLogEntry(*http.Request) middleware.LogEntry   { return quiet{} }
func (quiet) Write(int, int, http.Header, time.Duration, any) {}
func (quiet) Panic(any, []byte)                               {}

func ok(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

func users() chi.Router {
	r := chi.NewRouter()
	r.Get("/", ok)
	r.Get("/users/{id}", ok)
	r.Route("/deep", func(r chi.Router) { r.Get("/files/*", ok) })
	return r
}

// all is a router of everything, with middleware where use puts it.
func all(use func(chi.Router)) chi.Router {
	r := chi.NewRouter()
	use(r)
	r.Get("/users/{id:[0-9]+}", ok)
	r.Mount("/api", users())
	r.Mount("/old", chistat.StripPrefix("/old", users()))
	r.Mount("/opaque", http.StripPrefix("/opaque", users()))
	r.Get("/away", http.RedirectHandler("/users/7", http.StatusFound).ServeHTTP)
	r.Get("/files/*", ok)
	return r
}

type request struct {
	method, path string
	status       int
	want         string
}

var requests = []request{
	{"GET", "/users/7", 200, "GET /users/{id:[0-9]+}"},
	{"GET", "/users/x", 404, httpstat.Unmatched},
	{"GET", "/api/users/7", 200, "GET /api/users/{id}"},
	{"GET", "/api/users/a%2Fb", 200, "GET /api/users/{id}"},
	{"GET", "/api", 200, "GET /api"},
	{"GET", "/api/deep/files/a/b", 200, "GET /api/deep/files/*"},
	{"GET", "/api/nobody", 404, httpstat.Unmatched},
	{"GET", "/old/users/7", 200, "GET /old/users/{id}"},
	{"GET", "/opaque/users/7", 200, "GET /opaque/*"},
	{"GET", "/files/a/b", 200, "GET /files/*"},
	{"GET", "/away", 302, "GET /away"},
	{"GET", "/nobody", 404, httpstat.Unmatched},
	{"PUT", "/users/7", 405, httpstat.Unmatched},
	{"OPTIONS", "/users/7", 405, httpstat.Unmatched},
	{"MADEUP", "/users/7", 405, httpstat.Unmatched},
}

// check sends requests, each to a service of its own, and compares answers and names.
func check(t *testing.T, handler func(c *collector.Collector) http.Handler, requests []request) {
	t.Helper()
	for _, x := range requests {
		c := servicetest.NewCollector(t)
		if got := servicetest.Serve(t, handler(c))(x.method, x.path); got != x.status {
			t.Errorf("%s %s: %d, want %d", x.method, x.path, got, x.status)
		}
		if got := servicetest.Counted(t, c); len(got) != 1 || got[x.want] != fmt.Sprintf("%d: 1", x.status) {
			t.Errorf("%s %s: counted %v, want it for %s", x.method, x.path, got, x.want)
		}
	}
}

func TestRoutes(t *testing.T) {
	check(t, func(c *collector.Collector) http.Handler {
		return all(func(r chi.Router) { r.Use(chistat.Middleware(c)) })
	}, requests)
}

func TestRoutesOfARouterThatIsWrapped(t *testing.T) {
	check(t, func(c *collector.Collector) http.Handler { return chistat.Middleware(c)(all(func(chi.Router) {})) }, requests)
}

// Behind With and Group chi has routed, and in a mounted router in part.
func TestRoutesOfGroupsAndMountedRouters(t *testing.T) {
	check(t, func(c *collector.Collector) http.Handler {
		m := chistat.Middleware(c)
		r := chi.NewRouter()
		r.With(m).Get("/one/{id}", ok)
		r.With(m).Get("/rest/*", ok)
		r.Group(func(r chi.Router) {
			r.Use(m)
			r.Get("/group/{id}", ok)
		})
		r.Route("/sub/{tenant}", func(r chi.Router) {
			r.Use(m)
			r.Get("/x/{id}", ok)
		})
		return r
	}, []request{
		{"GET", "/one/7", 200, "GET /one/{id}"},
		{"GET", "/rest/7", 200, "GET /rest/*"},
		{"GET", "/group/7", 200, "GET /group/{id}"},
		{"GET", "/sub/a/x/7", 200, "GET /sub/{tenant}/x/{id}"},
		{"GET", "/sub/a/y", 404, httpstat.Unmatched},
	})
}

// Routers with middleware that changes what chi routes by: outside it is known, and GetHead inside, too.
func TestRoutesThatMiddlewareChanges(t *testing.T) {
	for _, head := range []string{"outside", "inside"} {
		check(t, func(c *collector.Collector) http.Handler {
			return all(func(r chi.Router) {
				use := []func(http.Handler) http.Handler{middleware.GetHead, chistat.Middleware(c)}
				if head == "inside" {
					slices.Reverse(use)
				}
				r.Use(use...)
			})
		}, []request{{"HEAD", "/users/7", 200, "GET /users/{id:[0-9]+}"}, {"HEAD", "/api/users/7", 200, "GET /api/users/{id}"}})
	}
	check(t, func(c *collector.Collector) http.Handler {
		return all(func(r chi.Router) { r.Use(middleware.StripSlashes, chistat.Middleware(c)) })
	}, []request{{"GET", "/users/7/", 200, "GET /users/{id:[0-9]+}"}, {"GET", "/api/users/7/", 200, "GET /api/users/{id}"}})
	check(t, func(c *collector.Collector) http.Handler {
		r := chi.NewRouter()
		r.Use(middleware.StripSlashes)
		r.With(chistat.Middleware(c)).Get("/users/{id}", ok)
		return r
	}, []request{{"GET", "/users/7/", 200, "GET /users/{id}"}})
	override := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			chi.RouteContext(r.Context()).RouteMethod = r.URL.Query().Get("_method")
			next.ServeHTTP(w, r)
		})
	}
	check(t, func(c *collector.Collector) http.Handler {
		return all(func(r chi.Router) { r.Use(override, chistat.Middleware(c)) })
	}, []request{{"POST", "/api/users/7?_method=GET", 200, "GET /api/users/{id}"}})
	check(t, func(c *collector.Collector) http.Handler {
		return all(func(r chi.Router) { r.Use(chistat.Middleware(c), middleware.RedirectSlashes) })
	}, []request{{"GET", "/users/7/", 301, httpstat.Unmatched}})
}

// A route that is added while the service runs, as some do, is found.
func TestRoutesThatAreAddedLate(t *testing.T) {
	c := servicetest.NewCollector(t)
	r := all(func(r chi.Router) { r.Use(chistat.Middleware(c)) })
	send := servicetest.Serve(t, r)
	send("GET", "/late/7")
	r.Get("/late/{id}", ok)
	send("GET", "/late/7")
	servicetest.Want(t, c, map[string]string{"GET /late/{id}": "200: 1", httpstat.Unmatched: "404: 1"})
}

func TestWaysToAnswer(t *testing.T) {
	for _, x := range []struct {
		name   string
		handle http.HandlerFunc
		status int // that the client gets, and is counted
	}{
		{"nothing", func(http.ResponseWriter, *http.Request) {}, 200},
		{"a status alone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, 202},
		{"a stream", func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				fmt.Fprint(w, "x")
				w.(http.Flusher).Flush()
			}
		}, 200},
		{"a deadline", func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				w.WriteHeader(http.StatusNotImplemented)
			}
		}, 200},
		{"another protocol", func(w http.ResponseWriter, _ *http.Request) {
			conn, buf, err := w.(http.Hijacker).Hijack()
			if err != nil {
				w.WriteHeader(http.StatusNotImplemented)
				return
			}
			servicetest.Upgrade(conn, buf)
		}, 101},
		{"another middleware's writer", func(w http.ResponseWriter, r *http.Request) {
			middleware.Compress(5)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, "x")
			})).ServeHTTP(w, r)
		}, 201},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := servicetest.NewCollector(t)
			r := chi.NewRouter()
			r.Use(chistat.Middleware(c))
			r.Get("/", x.handle)
			if got := servicetest.Serve(t, r)("GET", "/"); got != x.status {
				t.Errorf("the client got %d, want %d", got, x.status)
			}
			servicetest.Want(t, c, map[string]string{"GET /": fmt.Sprintf("%d: 1", x.status)})
		})
	}
}

// A panic is counted once, with the status that the client gets, whether the recoverer is inside or outside.
func TestPanics(t *testing.T) {
	for _, x := range []struct {
		name             string
		handle           http.HandlerFunc
		inside, outside  string
		status, unheeded int // that the client gets with a recoverer, and without
	}{
		{"panic", func(http.ResponseWriter, *http.Request) { panic("boom") }, "500: 1, exceptions: 1", "500: 1, exceptions: 1", 500, 0},
		{"after a body", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			w.(http.Flusher).Flush()
			panic("boom")
		}, "202: 1, exceptions: 1", "202: 1", 202, 202},
		{"abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "-: 1, exceptions: 1", "-: 1, exceptions: 1", 0, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, order := range []string{"inside", "outside", "alone"} {
				c := servicetest.NewCollector(t)
				opts, counted, status := []httpstat.Option{}, x.inside, x.status
				r := chi.NewRouter()
				use := []func(http.Handler) http.Handler{recoverer, nil}
				switch order {
				case "outside":
					slices.Reverse(use)
					counted = x.outside
				case "alone":
					use = use[1:]
					opts, status = append(opts, httpstat.Recovered(0)), x.unheeded
					counted = strings.Replace(counted, "500: 1", "-: 1", 1)
				}
				use[slices.IndexFunc(use, func(h func(http.Handler) http.Handler) bool { return h == nil })] = chistat.Middleware(c, opts...)
				r.Use(use...)
				r.Get("/", x.handle)
				if got := servicetest.Serve(t, r)("GET", "/"); got != status {
					t.Errorf("%s: the client got %d, want %d", order, got, status)
				}
				servicetest.Want(t, c, map[string]string{"GET /": counted})
			}
		})
	}
}

// A limit on a route refuses before anything behind runs.
func TestLimits(t *testing.T) {
	c := servicetest.NewCollector(t)
	if err := c.SetLimits([]collector.Limit{{Resource: "GET /api/users/{id}", Count: 0, Origin: "bot"}}); err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Use(chistat.Middleware(c, httpstat.Origin(func(r *http.Request) string { return r.URL.Query().Get("client") }),
		httpstat.Skip(func(r *http.Request) bool { return r.URL.Path == "/healthz" }),
		httpstat.Exception(func(status int) bool { return status == http.StatusTeapot })))
	ran := 0
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ran++; next.ServeHTTP(w, r) })
	})
	r.Route("/api", func(r chi.Router) {
		r.Get("/users/{id}", func(w http.ResponseWriter, r *http.Request) {
			_, below, _ := c.Enter(r.Context(), "below")
			below.Exit(nil)
			w.WriteHeader(http.StatusTeapot)
		})
	})
	r.Get("/healthz", ok)
	send := servicetest.Serve(t, r)
	for target, status := range map[string]int{"/api/users/7?client=bot": 429, "/api/users/7": 418, "/healthz": 200} {
		if got := send("GET", target); got != status {
			t.Errorf("%s: %d", target, got)
		}
	}
	if ran != 2 {
		t.Errorf("%d requests reached the handlers", ran)
	}
	servicetest.Want(t, c, map[string]string{"GET /api/users/{id}": "418: 1, blocked: 1, exceptions: 1", "below": "-: 1"})
	if node := c.Tree().Children()[0]; node.Name() != "http" || len(node.Children()) != 1 || len(node.Children()[0].Children()) != 1 {
		t.Error("the tree is not http > GET /api/users/{id} > below")
	}
}

func TestNilCollectorIsNotThere(t *testing.T) {
	r := chi.NewRouter()
	r.Use(chistat.Middleware(nil))
	r.Get("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if got := servicetest.Serve(t, r)("GET", "/"); got != 418 {
		t.Error(got)
	}
}

func BenchmarkMiddleware(b *testing.B) {
	for name, use := range map[string]chi.Middlewares{"bare": nil, "chistat": {chistat.Middleware(servicetest.NewCollector(b))}} {
		e := chi.NewRouter()
		e.Use(use...)
		e.Get("/users/{id}", func(http.ResponseWriter, *http.Request) {})
		r := httptest.NewRequest("GET", "/users/7", nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			w := httptest.NewRecorder()
			for b.Loop() {
				e.ServeHTTP(w, r)
			}
		})
	}
}
