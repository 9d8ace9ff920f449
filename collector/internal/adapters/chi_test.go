package adapters_test

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
)

// chiRecoverer is chi's Recoverer without log output.
func chiRecoverer(next http.Handler) http.Handler {
	return middleware.RequestLogger(chiQuiet{})(middleware.Recoverer(next))
}

type chiQuiet struct{}

func (chiQuiet) NewLogEntry(*http.Request) middleware.LogEntry   { return chiQuiet{} }
func (chiQuiet) Write(int, int, http.Header, time.Duration, any) {}
func (chiQuiet) Panic(any, []byte)                               {}

func chiOK(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

func chiUsers() chi.Router {
	r := chi.NewRouter()
	r.Get("/", chiOK)
	r.Get("/users/{id}", chiOK)
	r.Route("/deep", func(r chi.Router) { r.Get("/files/*", chiOK) })
	return r
}

// chiService returns a router with all kinds of routes. It first calls the function use, which installs middleware, and
// then adds the routes.
func chiService(use func(chi.Router)) chi.Router {
	r := chi.NewRouter()
	use(r)
	r.Get("/users/{id:[0-9]+}", chiOK)
	r.Mount("/api", chiUsers())
	r.Mount("/old", chistat.StripPrefix("/old", chiUsers()))
	r.Mount("/opaque", http.StripPrefix("/opaque", chiUsers()))
	r.Get("/away", http.RedirectHandler("/users/7", http.StatusFound).ServeHTTP)
	r.Get("/files/*", chiOK)
	return r
}

type chiRequest struct {
	method, path string
	status       int
	want         string
}

var chiRequests = []chiRequest{
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

// checkChi sends each request to a new service. It compares the status of the response and the resource of the call
// with the expected ones.
func checkChi(t *testing.T, handler func(c *collector.Collector) http.Handler, requests []chiRequest) {
	t.Helper()
	for _, x := range requests {
		c := newCollector(t)
		if got := serve(t, handler(c))(x.method, x.path); got != x.status {
			t.Errorf("%s %s: %d, want %d", x.method, x.path, got, x.status)
		}
		if got := counted(t, c); len(got) != 1 || got[x.want] != fmt.Sprintf("%d: 1", x.status) {
			t.Errorf("%s %s: counted %v, want one call of %s", x.method, x.path, got, x.want)
		}
	}
}

func TestChiRoutes(t *testing.T) {
	checkChi(t, func(c *collector.Collector) http.Handler {
		return chiService(func(r chi.Router) { r.Use(chistat.Middleware(c)) })
	}, chiRequests)
}

func TestChiWrappedRouter(t *testing.T) {
	checkChi(t, func(c *collector.Collector) http.Handler {
		return chistat.Middleware(c)(chiService(func(chi.Router) {}))
	}, chiRequests)
}

// When chi calls middleware that was added by With or Group, chi has already found the complete route. When chi calls
// middleware of a mounted router, chi has found only the route of the mount. In both cases, the complete route is the
// name of the call.
func TestChiRoutesOfGroupsAndMountedRouters(t *testing.T) {
	checkChi(t, func(c *collector.Collector) http.Handler {
		m := chistat.Middleware(c)
		r := chi.NewRouter()
		r.With(m).Get("/one/{id}", chiOK)
		r.With(m).Get("/rest/*", chiOK)
		r.Group(func(r chi.Router) {
			r.Use(m)
			r.Get("/group/{id}", chiOK)
		})
		r.Route("/sub/{tenant}", func(r chi.Router) {
			r.Use(m)
			r.Get("/x/{id}", chiOK)
		})
		return r
	}, []chiRequest{
		{"GET", "/one/7", 200, "GET /one/{id}"},
		{"GET", "/rest/7", 200, "GET /rest/*"},
		{"GET", "/group/7", 200, "GET /group/{id}"},
		{"GET", "/sub/a/x/7", 200, "GET /sub/{tenant}/x/{id}"},
		{"GET", "/sub/a/y", 404, httpstat.Unmatched},
	})
}

// Outer middleware may change the route of a request, for example by removing a slash. The name of the call is then the
// changed route. GetHead changes the names of HEAD requests even if it is installed inside of chistat's middleware.
func TestChiRoutesChangedByMiddleware(t *testing.T) {
	for _, head := range []string{"outside", "inside"} {
		checkChi(t, func(c *collector.Collector) http.Handler {
			return chiService(func(r chi.Router) {
				use := []func(http.Handler) http.Handler{middleware.GetHead, chistat.Middleware(c)}
				if head == "inside" {
					slices.Reverse(use)
				}
				r.Use(use...)
			})
		}, []chiRequest{{"HEAD", "/users/7", 200, "GET /users/{id:[0-9]+}"}, {
			"HEAD", "/api/users/7", 200,
			"GET /api/users/{id}",
		}})
	}
	checkChi(t, func(c *collector.Collector) http.Handler {
		return chiService(func(r chi.Router) { r.Use(middleware.StripSlashes, chistat.Middleware(c)) })
	}, []chiRequest{{"GET", "/users/7/", 200, "GET /users/{id:[0-9]+}"}, {
		"GET", "/api/users/7/", 200,
		"GET /api/users/{id}",
	}})
	checkChi(t, func(c *collector.Collector) http.Handler {
		r := chi.NewRouter()
		r.Use(middleware.StripSlashes)
		r.With(chistat.Middleware(c)).Get("/users/{id}", chiOK)
		return r
	}, []chiRequest{{"GET", "/users/7/", 200, "GET /users/{id}"}})
	override := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			chi.RouteContext(r.Context()).RouteMethod = r.URL.Query().Get("_method")
			next.ServeHTTP(w, r)
		})
	}
	checkChi(t, func(c *collector.Collector) http.Handler {
		return chiService(func(r chi.Router) { r.Use(override, chistat.Middleware(c)) })
	}, []chiRequest{{"POST", "/api/users/7?_method=GET", 200, "GET /api/users/{id}"}})
	checkChi(t, func(c *collector.Collector) http.Handler {
		return chiService(func(r chi.Router) { r.Use(chistat.Middleware(c), middleware.RedirectSlashes) })
	}, []chiRequest{{"GET", "/users/7/", 301, httpstat.Unmatched}})
}

// If a route is added while the service runs, later requests for this route have the name of the route.
func TestChiRoutesAddedAtRuntime(t *testing.T) {
	c := newCollector(t)
	r := chiService(func(r chi.Router) { r.Use(chistat.Middleware(c)) })
	send := serve(t, r)
	send("GET", "/late/7")
	r.Get("/late/{id}", chiOK)
	send("GET", "/late/7")
	wantCounted(t, c, map[string]string{"GET /late/{id}": "200: 1", httpstat.Unmatched: "404: 1"})
}

var chiFramework = framework[func(http.Handler) http.Handler, http.HandlerFunc]{
	middleware: chistat.Middleware,
	recoverer:  chiRecoverer,
	before: func(f func()) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f(); next.ServeHTTP(w, r) })
		}
	},
	handler: func(h http.HandlerFunc) http.HandlerFunc { return h },
	service: func(use []func(http.Handler) http.Handler, path string, handle http.HandlerFunc) http.Handler {
		r := chi.NewRouter()
		r.Use(use...)
		if below, ok := strings.CutPrefix(path, "/api"); ok {
			r.Route("/api", func(r chi.Router) { r.Get(below, handle) })
		} else {
			r.Get(path, handle)
		}
		return r
	},
	param: "{id}",
	own: []answer[http.HandlerFunc]{
		{name: "another middleware's writer", status: 201, handle: func(w http.ResponseWriter, r *http.Request) {
			middleware.Compress(5)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, "x")
			})).ServeHTTP(w, r)
		}},
	},
}
