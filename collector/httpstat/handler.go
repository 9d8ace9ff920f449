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

// StatusError is the error of a call whose status is an exception, see [Exception]. [collector.Options].Exception
// receives it.
type StatusError int

func (e StatusError) Error() string { return fmt.Sprintf("httpstat: status %d", int(e)) }

// Mux counts the requests to mux under the pattern that they match, such as "GET /users/{id}". For a ServeMux below
// mux, Mux uses the inner pattern, including the prefix of [StripPrefix]. If the inner ServeMux has its own Mux, both
// count the request: the inner resource is below the outer one in the call tree, and the request is one inbound call. A
// nil Collector counts nothing. Mux routes each request twice, because it needs the pattern before the handler runs.
func Mux(c *collector.Collector, mux *http.ServeMux, opts ...Option) http.Handler {
	return Handler(c, func(r *http.Request) string { return pattern(mux, r) }, mux, opts...)
}

// Route counts all requests to next as calls of one resource. A nil Collector counts nothing.
func Route(c *collector.Collector, resource string, next http.Handler, opts ...Option) http.Handler {
	return Handler(c, func(*http.Request) string { return resource }, next, opts...)
}

// Handler counts the requests to next. The function name returns the resource of a request. Everything that is
// available before next runs may determine the name. An empty name means [Unmatched]. Calls that next makes with the
// context of the request are nested below the request. If a limit refuses a request, next does not run, and the
// response is 429 with Retry-After, see [Refused]. A nil Collector counts nothing.
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

// Middleware counts the requests that are passed to [Middleware.Serve]. Use it instead of [Handler] for routers that
// determine the route before they call middleware, as frameworks do. Create it with [New]; concurrent use is safe.
type Middleware struct {
	*settings
	c      *collector.Collector
	always []collector.CallOption // options of every call
}

// New returns a Middleware. With a nil Collector it counts nothing.
func New(c *collector.Collector, opts ...Option) *Middleware {
	s := apply(opts)
	return &Middleware{
		settings: s,
		c:        c,
		always:   []collector.CallOption{collector.Inbound(), collector.Entrance(s.entrance)},
	}
}

// Serve counts a request as a call of resource ([Unmatched] if empty), and calls next exactly once. If a limit refuses
// the request, Serve sends the response itself and returns false. Everything else is as described at [Handler]. A
// framework that delays the status must call WriteHeader before next returns.
func (m *Middleware) Serve(w http.ResponseWriter, r *http.Request, resource string, next http.Handler) (passed bool) {
	return m.ServeInner(w, w, r, resource, next)
}

// ServeInner is [Middleware.Serve] for frameworks whose writer wraps another writer that middleware can replace. w is
// the writer of the framework, and inner is the wrapped writer. If a limit refuses the request, the response goes to w.
// Otherwise next gets a ResponseWriter that it must use in place of inner. This ResponseWriter may be inner itself.
func (m *Middleware) ServeInner(
	w, inner http.ResponseWriter, r *http.Request, resource string, next http.Handler,
) (passed bool) {
	if m.c == nil || m.skips(r) {
		next.ServeHTTP(inner, r)
		return true
	}
	return m.serve(w, inner, r, resource, next)
}

// serve counts a request. The order of its steps guarantees that each call that enters also exits, exactly once:
//
//  1. Options   trace, origin, Names.decide   user functions; a panic counts nothing
//  2. Enter     check limits, pass            a refused request ends here, with the handler of Refused
//  3. Wrap      record, lend                  records the status, and copies the request
//  4. Handle    handle                        runs next; exits the call even if next panics
//  5. Learn     Names.Learn                   only if next returned
//
// The response to a refused request goes to w. The handler's response is recorded at inner.
func (m *Middleware) serve(
	w, inner http.ResponseWriter, r *http.Request, resource string, next http.Handler,
) (passed bool) {
	if resource == "" {
		resource = Unmatched
	}
	// m.always is shared by all requests, so copy it before appending. Without options, no copy is necessary.
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
	// Call all functions of the options before Enter: if one panics or blocks, no call is in flight.
	ctx, e, err := m.c.Enter(r.Context(), resource, opts...)
	if err != nil {
		m.refused.ServeHTTP(w, r)
		return false
	}
	recorder, wrapped := record(inner, r)
	recorder.lend(r, ctx)
	m.handle(&e, trace, next, recorder, wrapped, r)
	if learn != nil {
		learn(int(recorder.status))
	}
	return true
}

// record returns the writer that records the response to r, and the ResponseWriter that the handler gets. The handler
// of an HTTP/1 request with a body gets net/http's own writer, see [serverFields].
func record(to http.ResponseWriter, r *http.Request) (w *writer, wrapped http.ResponseWriter) {
	if r.Body != nil && r.Body != http.NoBody {
		if fieldsOf(to) != nil {
			return &writer{to: to, own: true}, to
		}
	}
	w, wrapped = wrap(to)
	w.to = to
	return w, wrapped
}

// tooMany responds to a refused request. Limits apply to a second, so clients may retry after one.
func tooMany(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
}
