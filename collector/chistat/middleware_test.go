package chistat_test

import (
	"fmt"
	"io"
	"net/http"
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

var framework = servicetest.Framework[func(http.Handler) http.Handler, http.HandlerFunc]{
	Middleware: chistat.Middleware,
	Recoverer:  recoverer,
	Before: func(f func()) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f(); next.ServeHTTP(w, r) })
		}
	},
	Handler: func(h http.HandlerFunc) http.HandlerFunc { return h },
	Service: func(use []func(http.Handler) http.Handler, path string, handle http.HandlerFunc) http.Handler {
		r := chi.NewRouter()
		r.Use(use...)
		if below, ok := strings.CutPrefix(path, "/api"); ok {
			r.Route("/api", func(r chi.Router) { r.Get(below, handle) })
		} else {
			r.Get(path, handle)
		}
		return r
	},
	Param: "{id}",
}

func TestWaysToAnswer(t *testing.T) {
	framework.TestAnswers(t, servicetest.Answer[http.HandlerFunc]{Name: "another middleware's writer", Status: 201, Handle: func(w http.ResponseWriter, r *http.Request) {
		middleware.Compress(5)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "x")
		})).ServeHTTP(w, r)
	}})
}

func TestLimits(t *testing.T)       { framework.TestLimits(t) }
func TestNilCollector(t *testing.T) { framework.TestNilCollector(t) }
