package httpstat

import (
	"errors"
	"net/http"

	"github.com/windowstat/windowstat/collector"
)

// Unmatched is the resource of requests that match no route.
const Unmatched = "unmatched"

var errFailed = errors.New("httpstat: the handler failed")

// Mux counts the requests to mux for the pattern that they match, such as "GET /users/{id}". A nil Collector counts
// nothing. It routes each request twice, because the pattern must be known before the handler runs.
func Mux(c *collector.Collector, mux *http.ServeMux) http.Handler {
	return Handler(c, func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}, mux)
}

// Handler counts the requests to next for the resource that name gives them, which may depend on anything that is
// known before next runs. The empty name is [Unmatched]. A nil Collector counts nothing.
func Handler(c *collector.Collector, name func(*http.Request) string, next http.Handler) http.Handler {
	if c == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource := name(r)
		if resource == "" {
			resource = Unmatched
		}
		serve(c.Resource(resource), next, w, r)
	})
}

// Route counts all requests to next for one resource. A nil Collector counts nothing.
func Route(c *collector.Collector, resource string, next http.Handler) http.Handler {
	if c == nil {
		return next
	}
	res := c.Resource(resource)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(res, next, w, r) })
}

func serve(res *collector.Resource, next http.Handler, w http.ResponseWriter, r *http.Request) {
	seen, wrapped := watch(w)
	e := res.Enter()
	failed := errFailed // unless it returns
	defer func() { e.Exit(failed) }()
	next.ServeHTTP(wrapped, r)
	if seen.status < http.StatusInternalServerError {
		failed = nil
	}
}
