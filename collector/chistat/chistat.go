// Package chistat counts the requests of chi services with package collector. Install [Middleware] in a router:
//
//	r := chi.NewRouter()
//	r.Use(middleware.Recoverer, chistat.Middleware(c))
//	r.Mount("/api", api)
//
// Options, statuses, exceptions and limits work as in package httpstat. The resource of a request is its method and
// chi's pattern, such as "GET /api/users/{id}". The pattern includes the patterns of all mounted routers that the
// request passes, like the result of RoutePattern in a handler. Requests that match no route are [httpstat.Unmatched],
// whatever their method. A HEAD request without its own route gets the name of the GET route, because
// middleware.GetHead sends HEAD requests to GET routes. The middleware checks limits before the inner handlers run. The
// response to a refused request is 429.
//
// Calls that handlers make with r.Context() are nested below the request.
//
// # Position
//
// There are three ways to install the middleware:
//
//   - Use in the outermost router. The middleware counts all requests. Chi runs such middleware before it routes, so
//     the middleware searches for the route itself. Install middleware that changes the routing, such as StripSlashes,
//     outside of chistat's middleware. Otherwise a request gets the name of its original path. If an inner
//     RedirectSlashes redirects a request, the request is counted as Unmatched.
//   - The method With, or Use in a Group. The middleware counts only the routes that are added to the result of With or
//     in the Group. Chi has routed already, so no search is needed.
//   - Use in a mounted router. The middleware counts the routes and the 404s of this router. It sees the original paths
//     of the requests.
//
// To install the middleware in a router that is not a chi.Mux, wrap the router as a whole:
// chistat.Middleware(c)(router).
//
// If a mounted handler does not implement chi.Routes, its requests have the pattern of the mount, such as "GET /old/*".
// This is also true for a router behind http.StripPrefix, because http.StripPrefix hides the routes of the router. Use
// [StripPrefix] instead.
//
// # Panics
//
// The middleware works both inside and outside of chi's Recoverer. A panic is an exception. If the handler has written
// a status before the panic, the request has this status. Otherwise the request has status 500, which Recoverer sends.
// After the panic http.ErrAbortHandler, which Recoverer does not recover, the request has no code. If other middleware
// recovers panics and sends another status, pass that status to httpstat.Recovered. In a service without Recoverer,
// net/http closes the connection; use httpstat.Recovered(0).
//
// # Caveats
//
// Responses of outer middleware, such as CORS responses, are not counted. A request that passes the middleware twice,
// for example in a router and in a mounted router, is counted twice: the inner call is nested below the outer one.
//
// Chi does not allow adding routes while it routes. A route that is added after the first requests is counted from its
// own first request on.
package chistat

import (
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Middleware counts requests under their route: the method and chi's full pattern, such as "GET /api/users/{id}", or
// [httpstat.Unmatched]. If a limit refuses a request, the middleware sends the response, and no inner handler runs.
// Middleware takes the options of [httpstat.Handler]. A panic that propagates through the middleware is counted with
// 500, the status that chi's Recoverer sends, unless the option [httpstat.Recovered] sets another status. A nil
// Collector counts nothing.
//
// Middleware is safe for concurrent use. It costs as much as httpstat.Handler plus a search of the routes. No search is
// needed behind With and Group.
func Middleware(c *collector.Collector, opts ...httpstat.Option) func(http.Handler) http.Handler {
	m := httpstat.New(c, append([]httpstat.Option{httpstat.Recovered(http.StatusInternalServerError)}, opts...)...)
	return func(next http.Handler) http.Handler {
		routes, _ := next.(chi.Routes) // nil if next is a single handler
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.Serve(w, r, route(routes, r), next) })
	}
}

// StripPrefix is http.StripPrefix for a mounted router. Unlike the handler of http.StripPrefix, the handler that it
// returns implements chi.Routes, so [Middleware] finds the routes of the router:
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
	routes = chi.Routes // an alias, because an embedded field named Routes would hide the method Routes
)

// route returns the name of the route that a request matches: the method and the pattern, or an empty name for no
// route.
func route(routes chi.Routes, r *http.Request) string {
	method, path := r.Method, r.URL.RawPath // chi routes by RawPath if it is set
	if path == "" {
		path = r.URL.Path
	}
	if at := chi.RouteContext(r.Context()); at != nil {
		if at.RouteMethod != "" {
			method = at.RouteMethod
		}
		if n := len(at.RoutePatterns); n > 0 && !strings.HasSuffix(at.RoutePatterns[n-1], "*") {
			return method + " " + at.RoutePattern() // chi has routed already
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
	if method == http.MethodHead { // middleware.GetHead sends HEAD requests to GET routes
		if pattern := find(routes, http.MethodGet, path); pattern != "" {
			return http.MethodGet + " " + pattern
		}
	}
	return httpstat.Unmatched
}

// contexts recycles the routing contexts that find uses.
var contexts = sync.Pool{New: func() any { return chi.NewRouteContext() }}

// find returns the pattern that a method and a path match: the result of chi's RoutePattern after routing. If the
// method and the path match no route, find returns an empty string.
func find(routes chi.Routes, method, path string) string {
	x := contexts.Get().(*chi.Context)
	defer contexts.Put(x)
	x.Reset()
	if path == "" {
		path = "/"
	}
	if !routes.Match(x, method, path) {
		return ""
	}
	return x.RoutePattern()
}
