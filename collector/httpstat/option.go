package httpstat

import (
	"net/http"
	"slices"
	"strings"
)

// Option changes how requests are counted. Its functions, as the one that names requests, are asked before a request
// enters, and for those that a limit will refuse, too; that of [Exception] when it was answered. If one panics, that goes on,
// and the request is not counted; if that of Exception does, it is an exception. [Transport] takes [Exception] and [Skip]; all
// others are about requests that come in, and mean nothing to it.
type Option func(*settings)

type settings struct {
	origin    func(*http.Request) string
	entrance  string
	refused   http.Handler
	trace     func(*http.Request) string
	recovered int // status of a panic; 0 is none
	exception func(status int) bool
	skip      []func(*http.Request) bool
	names     *Names
}

func apply(opts []Option) *settings {
	s := &settings{entrance: DefaultEntrance, refused: http.HandlerFunc(tooMany), exception: serverError}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Exception tells which statuses are exceptions, in the place of those of 500 and more, which nil stands for. It is asked
// about the status that the request is counted with, see [collector.Entry.ExitCode]; a handler that panics and a call that
// ends with an error are exceptions whatever it says. [collector.Options].Exception, asked with a [StatusError], can still
// say no.
func Exception(is func(status int) bool) Option {
	if is == nil {
		is = serverError
	}
	return func(s *settings) { s.exception = is }
}

func serverError(status int) bool { return status >= http.StatusInternalServerError }

// failure is the error that a status counts as, nil if it is no exception.
func (s *settings) failure(status int) error {
	if s.exception(status) {
		return StatusError(status)
	}
	return nil
}

// Skip tells which requests are served or sent as if the package were not there, such as those for /healthz: they are not
// counted, no limit is asked, and what they call is outermost. Of several such options each can skip a request. (A filter of
// OpenTelemetry says the opposite: which ones to take.)
func Skip(which func(*http.Request) bool) Option {
	return func(s *settings) { s.skip = append(s.skip, which) }
}

func (s *settings) skips(r *http.Request) bool {
	return slices.ContainsFunc(s.skip, func(which func(*http.Request) bool) bool { return which != nil && which(r) })
}

// Origin tells who sends a request: the name of a client, of the service that calls, of a tenant. Whatever it gives is
// cleaned, and bounded by [collector.Options].MaxOrigins. Empty is no origin.
func Origin(of func(*http.Request) string) Option { return func(s *settings) { s.origin = of } }

// OriginHeader takes the origin from a header of the request. Anybody can send any header: the first MaxOrigins values
// are told apart, for as long as they are used.
func OriginHeader(name string) Option {
	return Origin(func(r *http.Request) string { return r.Header.Get(name) })
}

// Earn has the names that the name function gives earned, see [Names]: for functions such as [PathName] that make names
// of what strangers send. Calls of a name that is not are counted for [Unmatched], and limited by their own name. It is not
// for [Mux] and [Route], whose names are given.
func Earn(n *Names) Option { return func(s *settings) { s.names = n } }

// Entrance is the name of the context in which the requests are counted, [DefaultEntrance] otherwise. A service with
// several listeners, one for its users and one for its operators, can tell them apart.
func Entrance(name string) Option { return func(s *settings) { s.entrance = name } }

// Refused answers the requests that a limit refused, in the place of 429 with Retry-After: 1, which nil stands for.
func Refused(h http.Handler) Option {
	if h == nil {
		h = http.HandlerFunc(tooMany)
	}
	return func(s *settings) { s.refused = h }
}

// Recovered is for middleware inside of another that recovers panics and answers them with a status, as those of frameworks do
// with 500: requests whose handler panicked before it wrote a status are counted with this one, but for
// http.ErrAbortHandler, which they let through. The panic goes on as a second one. 0 is as without the option: no code.
func Recovered(status int) Option { return func(s *settings) { s.recovered = status } }

// Trace tells the id of the trace that a request is part of, empty for none. [collector.Collector.Oldest] has it while the request runs,
// and then it becomes an exemplar of the response time, see [collector.Entry.ExitTrace]. For the header of W3C's Trace Context it is
// [TraceParent].
func Trace(of func(*http.Request) string) Option { return func(s *settings) { s.trace = of } }

// TraceParent is the trace id of the header traceparent, if its flags mark the trace as recorded:
// version-id-parent-flags, in hexadecimal digits (https://www.w3.org/TR/trace-context/).
func TraceParent(r *http.Request) string {
	part := strings.Split(r.Header.Get("traceparent"), "-")
	if len(part) < 4 || len(part[0]) != 2 || len(part[1]) != 32 || len(part[3]) != 2 || part[1] == strings.Repeat("0", 32) {
		return ""
	}
	if recorded := strings.ContainsRune("13579bdf", rune(part[3][1])); !recorded || strings.Trim(part[1], "0123456789abcdef") != "" {
		return ""
	}
	return part[1]
}
