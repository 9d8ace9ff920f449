// Package chistat counts the requests of chi services: middleware on package collector.
//
//	r := chi.NewRouter()
//	r.Use(middleware.Recoverer, chistat.Middleware(c))
//	r.Mount("/api", api)
//
// The options are those of package httpstat, whose statuses, exceptions and limits hold here, too. The resource of a request is
// its method and chi's pattern as RoutePattern tells it in a handler, of all routers that are mounted on the way, such as
// "GET /api/users/{id}". Requests that match no route are [httpstat.Unmatched], whatever their method. HEAD has the name
// of GET's route if it has none of its own, because middleware.GetHead answers it so. Limits are asked before the handlers
// behind run: a request that they refuse is answered with 429.
//
// What handlers call with r.Context() is nested below the request.
//
// # Where it stands
//
// In Use of the outermost router it counts everything. Chi runs such middleware before it routes, so the route is searched
// twice. Middleware that changes what chi routes by, such as StripSlashes, goes outside: inside of it a request is named by
// the path that it came with. RedirectSlashes, inside, redirects requests that are unmatched.
//
// With With, and in a Group, chi has routed already, and nothing is searched; only the routes there are counted. Use of a
// router that is mounted counts those, and its 404s; there it sees paths as the request came with them. A router that is
// no chi.Mux is wrapped as a whole: chistat.Middleware(c)(router).
//
// A handler that is mounted and is no chi.Routes counts for the pattern that it is mounted at, such as "GET /old/*". So does
// a router behind http.StripPrefix, into which nobody can look; [StripPrefix] is the same, and keeps its routes.
//
// # Panics
//
// The middleware may stand inside or outside of chi's Recoverer. A panic is an exception, with the status that was written, or
// 500, which Recoverer answers with; http.ErrAbortHandler, which it lets through, has no code. A service without Recoverer,
// where net/http closes the connection, says httpstat.Recovered(0), and one whose recoverer has another status that one.
//
// # Caveats
//
// What middleware outside of this one answers itself, as for CORS, is not counted. A request is counted twice, one below the
// other, if it passes the middleware twice, as in a router and one that is mounted in it.
//
// Chi allows no routes to be added while it routes; one that was added is counted from its first request on.
package chistat

import (
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Middleware counts requests for their route: the method and chi's whole pattern, such as "GET /api/users/{id}", or
// [httpstat.Unmatched]. One that a limit refuses is answered, and no handler behind this one runs. The options are those of
// [httpstat.Handler]; a panic that goes on is counted with 500, which chi's Recoverer makes of it, unless the option
// [httpstat.Recovered] says otherwise. A nil Collector counts nothing.
//
// It is safe for concurrent use, and costs what httpstat.Handler does and a search of the routes, because chi runs the
// middleware of Use before it routes.
func Middleware(c *collector.Collector, opts ...httpstat.Option) func(http.Handler) http.Handler {
	m := httpstat.New(c, append([]httpstat.Option{httpstat.Recovered(http.StatusInternalServerError)}, opts...)...)
	return func(next http.Handler) http.Handler {
		routes, _ := next.(chi.Routes) // of a router that is wrapped as a whole
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.Serve(w, r, route(routes, r), next) })
	}
}

// StripPrefix is http.StripPrefix for a router that is mounted, whose routes are found then:
//
//	r.Mount("/api", chistat.StripPrefix("/api", users))
func StripPrefix(prefix string, router chi.Router) http.Handler {
	return stripped{router, http.StripPrefix(prefix, router)}
}

type (
	stripped struct {
		routes
		http.Handler
	}
	routes = chi.Routes // whose own name is that of a method of it
)

// route is the name of the route that a request matches.
func route(routes chi.Routes, r *http.Request) string {
	method, path := r.Method, r.URL.RawPath // chi routes by it where it is set
	if path == "" {
		path = r.URL.Path
	}
	if at := chi.RouteContext(r.Context()); at != nil {
		if at.RouteMethod != "" {
			method = at.RouteMethod
		}
		if n := len(at.RoutePatterns); n > 0 && !strings.HasSuffix(at.RoutePatterns[n-1], "*") {
			return method + " " + at.RoutePattern() // it has been routed
		} else if n == 0 && at.RoutePath != "" {
			path = at.RoutePath
		}
		if routes = at.Routes; routes == nil {
			return httpstat.Unmatched
		}
	}
	if routes == nil {
		return httpstat.Unmatched
	}
	if pattern := find(routes, method, path); pattern != "" {
		return method + " " + pattern
	}
	if method == http.MethodHead { // which middleware.GetHead has routes of GET answer
		if pattern := find(routes, http.MethodGet, path); pattern != "" {
			return http.MethodGet + " " + pattern
		}
	}
	return httpstat.Unmatched
}

var found = sync.Pool{New: func() any { return chi.NewRouteContext() }}

// find is the pattern that a path matches, as chi tells it when it has routed; empty if there is none.
func find(routes chi.Routes, method, path string) string {
	x := found.Get().(*chi.Context)
	defer found.Put(x)
	x.Reset()
	if path == "" {
		path = "/"
	}
	if !routes.Match(x, method, path) {
		return ""
	}
	return x.RoutePattern()
}
