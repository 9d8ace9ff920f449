package httpstat

import (
	"fmt"
	"net/http"

	"github.com/windowstat/windowstat/collector"
)

// Unmatched is the resource of requests that match no route.
const Unmatched = "unmatched"

// DefaultEntrance is the entrance of requests without the option [Entrance].
const DefaultEntrance = "http"

// StatusError is the error that the status of an exception counts as, see [Exception]: what [collector.Options] are asked
// about.
type StatusError int

func (e StatusError) Error() string { return fmt.Sprintf("httpstat: status %d", int(e)) }

// Mux counts the requests to mux for the pattern that they match, such as "GET /users/{id}". A nil Collector counts
// nothing. It routes each request twice, because the pattern must be known before the handler runs.
func Mux(c *collector.Collector, mux *http.ServeMux, opts ...Option) http.Handler {
	return Handler(c, func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}, mux, opts...)
}

// Route counts all requests to next for one resource. A nil Collector counts nothing.
func Route(c *collector.Collector, resource string, next http.Handler, opts ...Option) http.Handler {
	return Handler(c, func(*http.Request) string { return resource }, next, opts...)
}

// Handler counts the requests to next for the resource that name gives them, which may depend on anything that is
// known before next runs. The empty name is [Unmatched]. What next calls with the request's context is nested below it.
// A request that a limit refuses does not reach next: it is answered with 429 and Retry-After, see [Refused]. A nil
// Collector counts nothing.
func Handler(c *collector.Collector, name func(*http.Request) string, next http.Handler, opts ...Option) http.Handler {
	if c == nil {
		return next
	}
	s := apply(opts)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.skips(r) {
			next.ServeHTTP(w, r)
			return
		}
		resource := name(r)
		if resource == "" {
			resource = Unmatched
		}
		opts := []collector.Option{collector.Inbound(), collector.Entrance(s.entrance)}
		if s.origin != nil {
			opts = append(opts, collector.Origin(s.origin(r)))
		}
		trace := ""
		if s.trace != nil {
			trace = s.trace(r)
		}
		var learn func(status int)
		if s.names != nil {
			resource, opts, learn = s.names.decide(c, resource, r, opts)
		}
		// All that tells of a request is asked before it enters: a function that panics or blocks has nothing in flight.
		ctx, e, err := c.Enter(r.Context(), resource, opts...)
		if err != nil {
			s.refused.ServeHTTP(w, r)
			return
		}
		inner := r.WithContext(ctx)
		if status := s.serve(e, trace, next, w, inner); learn != nil {
			learn(status)
		}
		r.Pattern = inner.Pattern // for middleware that reads the request afterwards
	})
}

// serve calls the handler, and returns the status that the request is counted with; 0 if there is none.
func (s *settings) serve(e *collector.Entry, trace string, next http.Handler, w http.ResponseWriter, r *http.Request) (status int) {
	seen, wrapped := watch(w)
	err := collector.ErrPanicked // unless it returns
	defer func() {
		var code collector.Code // none if it did not get as far
		if seen.status != 0 {
			code = collector.HTTPStatus(seen.status)
		}
		if trace == "" {
			e.ExitCode(err, code)
		} else {
			e.ExitTrace(err, code, trace)
		}
	}()
	next.ServeHTTP(wrapped, r)
	seen.implied()
	err = s.failure(seen.status)
	return seen.status
}

// tooMany answers a request that was refused. The limit is for a second, so that is when to come again.
func tooMany(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
}
