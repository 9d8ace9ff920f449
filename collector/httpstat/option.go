package httpstat

import (
	"net/http"
	"slices"
	"strings"
)

// Option configures how requests are counted. The functions of options, and the function that names requests, run
// before a request enters, also for requests that a limit then refuses. Only the function of [Exception] runs after the
// response. If a function panics before the request enters, the panic propagates, and the request is not counted. If
// the function of Exception panics, the request is an exception. [Transport] supports [Exception] and [Skip] only; all
// other options concern incoming requests.
type Option func(*settings)

// settings holds the values of the options. Functions that are nil are not set.
type settings struct {
	origin    func(*http.Request) string
	entrance  string
	refused   http.Handler
	trace     func(*http.Request) string
	recovered int // status of a panic; 0 means no code
	exception func(status int) bool
	skip      []func(*http.Request) bool
	names     *Names
}

// apply returns the default settings, changed by opts.
func apply(opts []Option) *settings {
	s := &settings{entrance: DefaultEntrance, refused: http.HandlerFunc(tooMany), exception: serverError}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Exception sets the function that selects the statuses that are exceptions. Without the option, or if the function is
// nil, statuses of 500 and more are exceptions. The function gets the recorded status, see [collector.Entry.ExitCode].
// Handlers that panic and calls that end with an error are always exceptions. [collector.Options].Exception can reject
// a status: it receives a [StatusError].
func Exception(is func(status int) bool) Option {
	if is == nil {
		is = serverError
	}
	return func(s *settings) { s.exception = is }
}

// serverError is the default rule of Exception.
func serverError(status int) bool { return status >= http.StatusInternalServerError }

// failure returns the error of a status, or nil if the status is no exception.
func (s *settings) failure(status int) error {
	if s.exception(status) {
		return StatusError(status)
	}
	return nil
}

// Skip selects requests that are served or sent as if the package were not there, such as requests for /healthz.
// Skipped requests are not counted, limits do not apply to them, and the calls that they make are outermost. With
// several Skip options, each can skip a request. (A filter of OpenTelemetry is the opposite: it selects the requests to
// count.)
func Skip(which func(*http.Request) bool) Option {
	return func(s *settings) { s.skip = append(s.skip, which) }
}

// skips reports whether the function of a Skip option selects r.
func (s *settings) skips(r *http.Request) bool {
	return slices.ContainsFunc(s.skip, func(which func(*http.Request) bool) bool { return which != nil && which(r) })
}

// Origin sets a function that returns the sender of a request: the name of a client, a calling service or a tenant. The
// value is cleaned, and [collector.Options].MaxOrigins limits the number of values. An empty value means no origin.
func Origin(of func(*http.Request) string) Option { return func(s *settings) { s.origin = of } }

// OriginHeader takes the origin from a header of the request. Clients can send any value in the header. The first
// MaxOrigins values (see [collector.Options]) are counted separately while they are in use.
func OriginHeader(name string) Option {
	return Origin(func(r *http.Request) string { return r.Header.Get(name) })
}

// Earn requires that the names of the name function are earned, see [Names]. Use it with functions such as [PathName]
// that make names from requests. Calls of unearned names are counted as [Unmatched], and limited by their own name.
// Earn is not useful with [Mux] and [Route], whose names are given.
func Earn(n *Names) Option { return func(s *settings) { s.names = n } }

// Entrance sets the name of the context that counts the requests; the default is [DefaultEntrance]. A service with
// several listeners, such as one for users and one for operators, can count them separately.
func Entrance(name string) Option { return func(s *settings) { s.entrance = name } }

// Refused sets the handler that responds to requests that a limit refused. Without the option, or if h is nil, the
// response is 429 with Retry-After: 1.
func Refused(h http.Handler) Option {
	if h == nil {
		h = http.HandlerFunc(tooMany)
	}
	return func(s *settings) { s.refused = h }
}

// Recovered sets the status of requests whose handler panicked before it wrote one. Without the option, or with 0, such
// requests have no code. Use the option inside other middleware that recovers panics and sends a status, such as the
// 500 of most frameworks. The option does not apply to http.ErrAbortHandler, because such middleware lets that panic
// through. To see the value of a panic, this package recovers it, and panics again with the same value.
func Recovered(status int) Option { return func(s *settings) { s.recovered = status } }

// Trace sets a function that returns the trace id of a request, or an empty string. [collector.Collector.Oldest]
// reports the id while the request runs. Afterwards the id becomes an exemplar of the response time, see
// [collector.Entry.ExitTrace]. For the header of W3C Trace Context use [TraceParent].
func Trace(of func(*http.Request) string) Option { return func(s *settings) { s.trace = of } }

// TraceParent returns the trace id in the header traceparent, if its flags mark the trace as recorded. The header has
// the form version-id-parent-flags, in hexadecimal digits (https://www.w3.org/TR/trace-context/).
func TraceParent(r *http.Request) string {
	// For example 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01. An id of zeros is invalid. The lowest bit of
	// the flags means recorded, so their last digit must be odd.
	part := strings.Split(r.Header.Get("traceparent"), "-")
	if len(part) < 4 || len(part[0]) != 2 || len(part[1]) != 32 || len(part[3]) != 2 ||
		part[1] == strings.Repeat("0", 32) {
		return ""
	}
	if recorded := strings.ContainsRune("13579bdf", rune(part[3][1])); !recorded ||
		strings.Trim(part[1], "0123456789abcdef") != "" {
		return ""
	}
	return part[1]
}
