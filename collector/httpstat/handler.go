package httpstat

import (
	"fmt"
	"net/http"

	"github.com/windowstat/windowstat/collector"
)

// Unmatched is the resource of requests that match no route.
const Unmatched = "unmatched"

// DefaultEntrance is the entrance of requests if the option [Entrance] is not set.
const DefaultEntrance = "http"

// StatusError is the error of a call whose status is an exception (see [Exception]). Its value is the status.
// [collector.Options].Exception receives this error.
type StatusError int

func (e StatusError) Error() string { return fmt.Sprintf("httpstat: status %d", int(e)) }

// Mux counts the requests to mux under the pattern that they match, such as "GET /users/{id}". The handler of a pattern
// can be another ServeMux. Mux then uses the inner pattern, with the prefix of [StripPrefix] in front. The handler of a
// pattern can also be a handler that Mux has returned. Both handlers then count the request: in the call tree, the
// inner resource is below the outer resource, and the request is one inbound call.
//
// Mux routes each request twice, because it needs the pattern before the handler runs. A nil Collector counts nothing.
func Mux(c *collector.Collector, mux *http.ServeMux, opts ...Option) http.Handler {
	return Handler(c, func(r *http.Request) string { return pattern(mux, r) }, mux, opts...)
}

// Route counts all requests to the handler next as calls of one resource. A nil Collector counts nothing.
func Route(c *collector.Collector, resource string, next http.Handler, opts ...Option) http.Handler {
	return Handler(c, func(*http.Request) string { return resource }, next, opts...)
}

// Handler counts the requests to the handler next. The parameter name is a function that returns the resource of a
// request, or an empty string for [Unmatched]. Handler calls this function before next, so the function cannot use data
// that next sets. Calls that next makes with the context of the request are nested below the request. If a limit
// refuses a request, next does not run, and the response is 429 with Retry-After; see [Refused]. A nil Collector counts
// nothing.
func Handler(c *collector.Collector, name func(*http.Request) string, next http.Handler, opts ...Option) http.Handler {
	if c == nil {
		return next
	}
	m := New(c, opts...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.skips(r) {
			next.ServeHTTP(w, r)
		} else {
			m.serve(w, w, r, name(r), next)
		}
	})
}

// Middleware counts the requests that are passed to [Middleware.Serve]. It is for routers that determine the route
// before they call middleware, as frameworks do. For other handlers use [Handler]. Create a Middleware with [New]. It
// is safe for concurrent use.
type Middleware struct {
	*settings
	c      *collector.Collector
	always []collector.CallOption // options of every call
}

// New returns a Middleware that counts with c. If c is nil, it counts nothing.
func New(c *collector.Collector, opts ...Option) *Middleware {
	s := apply(opts)
	return &Middleware{
		settings: s,
		c:        c,
		always:   []collector.CallOption{collector.Inbound(), collector.Entrance(s.entrance)},
	}
}

// Serve counts a request as a call of the given resource, or of [Unmatched] if resource is empty, and calls next. If a
// limit refuses the request, Serve sends the response itself instead of calling next, and returns false. In all other
// respects Serve counts a request as [Handler] does. A framework that delays the status must call WriteHeader before
// next returns.
func (m *Middleware) Serve(w http.ResponseWriter, r *http.Request, resource string, next http.Handler) (passed bool) {
	return m.ServeInner(w, w, r, resource, next)
}

// ServeInner is [Middleware.Serve] for a framework whose ResponseWriter contains another ResponseWriter that middleware
// can replace. w is the framework's writer, and inner is the writer that w contains. If a limit refuses the request,
// the response goes to w. Otherwise next gets a ResponseWriter, which may be inner itself. While next runs, w must use
// this ResponseWriter instead of inner.
func (m *Middleware) ServeInner(
	w, inner http.ResponseWriter, r *http.Request, resource string, next http.Handler,
) (passed bool) {
	if m.c == nil || m.skips(r) {
		next.ServeHTTP(inner, r)
		return true
	}
	return m.serve(w, inner, r, resource, next)
}

// serve implements Serve and ServeInner. The order of its steps guarantees that each call that enters also exits,
// exactly once:
//
//  1. Options: trace, origin and Names.decide call functions that the user has set. If such a function panics,
//     nothing is counted.
//  2. Enter: the Collector checks limits, and counts a pass. A refused request ends here, with the handler of Refused.
//  3. Wrap: record returns the ResponseWriter for next, and lend copies the request.
//  4. Handle: handle runs the handler next, and ends the call even if next panics.
//  5. Learn: Names.Learn records the status, but only if next has returned.
//
// The response to a refused request goes to w. The response of next goes to inner, usually through a wrapper that
// records the status; see record.
func (m *Middleware) serve(
	w, inner http.ResponseWriter, r *http.Request, resource string, next http.Handler,
) (passed bool) {
	if resource == "" {
		resource = Unmatched
	}
	// All requests share m.always, so further options are appended to a copy of it. Requests without further options
	// need no copy.
	opts := m.always
	trace := ""
	if m.trace != nil {
		trace = m.trace(r)
	}
	if m.origin != nil || m.names != nil || trace != "" {
		opts = append(make([]collector.CallOption, 0, 5), opts...)
	}
	if m.origin != nil {
		opts = append(opts, collector.Origin(m.origin(r)))
	}
	if trace != "" {
		opts = append(opts, collector.TraceID(trace))
	}
	var learn func(status int)
	if m.names != nil {
		resource, opts, learn = m.names.decide(m.c, resource, r, opts)
	}
	// The functions of all options except Exception have run before Enter. If one of these functions panics or blocks,
	// no call stays in flight.
	ctx, e, err := m.c.Enter(r.Context(), resource, opts...)
	if err != nil {
		m.refused.ServeHTTP(w, r)
		return false
	}
	recorder, rw := record(inner, r)
	recorder.lend(r, ctx)
	m.handle(&e, trace, next, recorder, rw, r)
	if learn != nil {
		learn(int(recorder.status))
	}
	return true
}

// record returns the ResponseWriter rw for the handler of r, and the writer w that records the status of the response.
// Usually rw contains w, and writes to target. If target is the HTTP/1 writer of net/http and r has a body, rw is
// target itself; see [serverFields].
func record(target http.ResponseWriter, r *http.Request) (w *writer, rw http.ResponseWriter) {
	if r.Body != nil && r.Body != http.NoBody {
		if fieldsOf(target) != nil {
			return &writer{target: target, own: true}, target
		}
	}
	w, rw = wrap(target)
	w.target = target
	return w, rw
}

// tooMany responds to a refused request. A limit on QPS has quota again after a second at the latest, so the field
// Retry-After is 1.
func tooMany(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
}
