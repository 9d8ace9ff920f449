package httpstat

import (
	"net/http"
	"slices"
	"strings"
)

// Option configures how requests are counted. [Transport] supports only [Exception] and [Skip]; all other options are
// for incoming requests.
//
// Several options take a function. The parameter name of [Handler] is a function, too. All these functions run before a
// request enters, even if a limit then refuses the request. If such a function panics, the panic propagates, and the
// request is not counted. The function of [Exception] is different: it runs after the response. If that function
// panics, the request is counted as an exception.
type Option func(*settings)

// settings holds the values of the options. origin and trace are nil if their options are not set.
type settings struct {
	origin    func(*http.Request) string
	entrance  string
	refused   http.Handler
	trace     func(*http.Request) string
	recovered int // status of a request whose handler panicked before it wrote a status; 0 means no code
	exception func(status int) bool
	skip      []func(*http.Request) bool
	names     *Names
}

// apply returns the settings that result from opts. Settings without an option have their defaults.
func apply(opts []Option) *settings {
	s := &settings{entrance: DefaultEntrance, refused: http.HandlerFunc(tooMany), exception: serverError}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Exception sets the function that selects the statuses that are exceptions. Without the option, or if the function is
// nil, statuses of 500 and more are exceptions. The function gets the HTTP status with which the request is counted. If
// the function selects the status, [collector.Options].Exception gets a [StatusError], and can decide that the call is
// not an exception.
//
// Two kinds of exceptions do not depend on the function: a request whose handler panics, and a gRPC call with a code
// that is an exception. The errors that [Transport] gets from next or from the body of a response do not depend on the
// function either: they go to [collector.Options].Exception directly.
func Exception(is func(status int) bool) Option {
	if is == nil {
		is = serverError
	}
	return func(s *settings) { s.exception = is }
}

// serverError is the default function of [Exception].
func serverError(status int) bool { return status >= http.StatusInternalServerError }

// failure returns the error of a status, or nil if the status is not an exception.
func (s *settings) failure(status int) error {
	if s.exception(status) {
		return StatusError(status)
	}
	return nil
}

// Skip selects requests that are served or sent as if this package were not used, such as requests for /healthz. They
// are not counted, and limits do not apply to them. Calls that are made for a skipped request are outermost calls. With
// several Skip options, a request is skipped if one of them selects it. (A filter of OpenTelemetry is the opposite: it
// selects the requests to count.)
func Skip(which func(*http.Request) bool) Option {
	return func(s *settings) { s.skip = append(s.skip, which) }
}

// skips reports whether the function of a Skip option selects r.
func (s *settings) skips(r *http.Request) bool {
	return slices.ContainsFunc(s.skip, func(which func(*http.Request) bool) bool { return which != nil && which(r) })
}

// Origin sets a function that returns the sender of a request: the name of a client, a calling service or a tenant. An
// empty name means no origin. A name that is too long or not valid UTF-8 is changed as described at
// [collector.CleanName]. [collector.Options].MaxOrigins limits how many senders are counted separately.
func Origin(of func(*http.Request) string) Option { return func(s *settings) { s.origin = of } }

// OriginHeader takes the origin from the header field with this name. Clients can send any value in the field.
// [collector.Options].MaxOrigins limits how many values are counted separately.
func OriginHeader(name string) Option {
	return Origin(func(r *http.Request) string { return r.Header.Get(name) })
}

// Earn makes n decide which names become resources: a name must be earned, see [Names]. Use it if the name function
// makes names from requests, as the function of [PathName] does. Calls of unearned names are counted as [Unmatched],
// but the limits of their own names apply. Earn is not useful with [Mux] and [Route], whose names come from code.
func Earn(n *Names) Option { return func(s *settings) { s.names = n } }

// Entrance sets the entrance of the requests; the default is [DefaultEntrance]. A service with several listeners, such
// as one for users and one for operators, can count the requests of each listener separately.
func Entrance(name string) Option { return func(s *settings) { s.entrance = name } }

// Refused sets the handler that responds to requests that a limit refused. Without the option, or if h is nil, the
// response is 429 with Retry-After: 1.
func Refused(h http.Handler) Option {
	if h == nil {
		h = http.HandlerFunc(tooMany)
	}
	return func(s *settings) { s.refused = h }
}

// Recovered sets the status of requests whose handler panicked before it wrote a status. Without the option, or with 0,
// such requests have no code. Use the option if outer middleware recovers panics and sends a status: most frameworks
// send 500. The option does not apply to the panic http.ErrAbortHandler, because such middleware does not recover it.
// With the option, this package recovers a panic to get its value, and then panics again with the same value.
func Recovered(status int) Option { return func(s *settings) { s.recovered = status } }

// Trace sets a function that returns the trace ID of a request, or an empty string. While the request runs,
// [collector.Collector.Oldest] reports the ID. Afterwards the ID becomes an exemplar of the response time, see
// [collector.Entry.ExitTrace]. For the header of W3C Trace Context use [TraceParent].
func Trace(of func(*http.Request) string) Option { return func(s *settings) { s.trace = of } }

// TraceParent returns the trace ID in the header traceparent. It returns an empty string if the header is invalid, or
// if its flags do not mark the trace as recorded. The header has the form version-id-parent-flags, in hexadecimal
// digits (https://www.w3.org/TR/trace-context/).
func TraceParent(r *http.Request) string {
	// An example is 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01. An ID of zeros is invalid. The lowest bit
	// of the flags means recorded, so the last digit of the flags must be odd.
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
