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
