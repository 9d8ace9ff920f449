package httpstat

import "net/http"

// Option says how requests are counted.
type Option func(*settings)

type settings struct {
	origin   func(*http.Request) string
	entrance string
	refused  http.Handler
}

// Origin tells who sends a request: the name of a client, of the service that calls, of a tenant. Whatever it gives is
// cleaned, and bounded by [collector.Options].MaxOrigins. Empty is no origin.
func Origin(of func(*http.Request) string) Option { return func(s *settings) { s.origin = of } }

// OriginHeader takes the origin from a header of the request. Anybody can send any header: the first MaxOrigins values
// are told apart, for as long as they are used.
func OriginHeader(name string) Option {
	return Origin(func(r *http.Request) string { return r.Header.Get(name) })
}

// Entrance is the name of the context in which the requests are counted, [DefaultEntrance] otherwise. A service with
// several listeners, one for its users and one for its operators, can tell them apart.
func Entrance(name string) Option { return func(s *settings) { s.entrance = name } }

// Refused answers the requests that a limit refused, in the place of 429 with Retry-After: 1.
func Refused(h http.Handler) Option { return func(s *settings) { s.refused = h } }
