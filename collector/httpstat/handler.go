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

// Mux counts the requests to mux for the pattern that they match, such as "GET /users/{id}". A ServeMux below it has its own
// patterns counted, in full if it is behind [StripPrefix]. One that has a Mux of its own is counted by both: the inner resource stands
// below the outer one in the call tree, and the request is one of the inbound calls. A nil Collector counts nothing. It routes each request twice,
// because the pattern must be known before the handler runs.
func Mux(c *collector.Collector, mux *http.ServeMux, opts ...Option) http.Handler {
	return Handler(c, func(r *http.Request) string { return pattern(mux, r) }, mux, opts...)
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
	m := New(c, opts...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.skips(r) {
			next.ServeHTTP(w, r)
		} else {
			m.serve(w, r, name(r), next)
		}
	})
}

// Middleware counts the requests that are told to it one by one: [Handler] for routers that know the route of a request only
// when they call a middleware of their own, as those of frameworks do. It must be made with [New], and is safe for
// concurrent use.
type Middleware struct {
	*settings
	c      *collector.Collector
	always []collector.CallOption // of every request
}

// New makes a Middleware. With a nil Collector it counts nothing.
func New(c *collector.Collector, opts ...Option) *Middleware {
	s := apply(opts)
	return &Middleware{settings: s, c: c, always: []collector.CallOption{collector.Inbound(), collector.Entrance(s.entrance)}}
}

// Serve counts a request for a resource, [Unmatched] if empty, and has next handle it, once; or it answers it, and reports
// false, because a limit refuses it. All else is as [Handler] has it. A framework that keeps the status until it must go out tells it by
// WriteHeader before next returns.
func (m *Middleware) Serve(w http.ResponseWriter, r *http.Request, resource string, next http.Handler) (passed bool) {
	if m.c == nil || m.skips(r) {
		next.ServeHTTP(w, r)
		return true
	}
	return m.serve(w, r, resource, next)
}

func (m *Middleware) serve(w http.ResponseWriter, r *http.Request, resource string, next http.Handler) (passed bool) {
	if resource == "" {
		resource = Unmatched
	}
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
	// All that tells of a request is asked before it enters: a function that panics or blocks has nothing in flight.
	ctx, e, err := m.c.Enter(r.Context(), resource, opts...)
	if err != nil {
		m.refused.ServeHTTP(w, r)
		return false
	}
	seen, wrapped := watch(ctx, w, r)
	m.handle(&e, trace, next, seen, wrapped)
	if learn != nil {
		learn(seen.status)
	}
	r.Pattern = seen.request.Pattern // for middleware that reads the request afterwards
	return true
}

// handle calls the handler, and ends the call with the status that the request is counted with.
func (m *Middleware) handle(e *collector.Entry, trace string, next http.Handler, seen *writer, wrapped http.ResponseWriter) {
	err := collector.ErrPanicked // unless it returns
	defer func() {               // also if what is asked below panics
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
	defer func() {
		if seen.status == 0 && m.recovered != 0 {
			if reason := recover(); reason != nil { // it is nil where the goroutine was ended
				if reason != http.ErrAbortHandler {
					seen.status = m.recovered
				}
				defer panic(reason)
			}
		}
	}()
	next.ServeHTTP(wrapped, &seen.request)
	seen.implied()
	err = m.failure(seen.status)
}

// tooMany answers a request that was refused. The limit is for a second, so that is when to come again.
func tooMany(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
}
