package httpstat

import (
	"cmp"
	"net/http"
	"strings"
)

// StripPrefix is http.StripPrefix for use with [Mux]. If h is an http.ServeMux, Mux then counts requests under their
// full pattern. With
//
//	mux.Handle("/api/", httpstat.StripPrefix("/api", users))
//
// a request is counted as "GET /api/users/{id}". With http.StripPrefix the request would be counted as "/api/", because
// Mux cannot find the ServeMux inside the handler of http.StripPrefix.
func StripPrefix(prefix string, h http.Handler) http.Handler {
	return &stripped{Handler: http.StripPrefix(prefix, h), prefix: prefix, next: h}
}

// stripped is the handler that [StripPrefix] returns, with the fields that the function pattern needs.
type stripped struct {
	http.Handler
	prefix string
	next   http.Handler
}

// pattern returns the full pattern that a request to mux matches, or an empty string if the request matches no pattern.
func pattern(mux *http.ServeMux, r *http.Request) string {
	h, outer := mux.Handler(r)
	prefix := ""
	for outer != "" {
		switch x := h.(type) {
		case *stripped:
			if r = x.strip(r); r == nil {
				return ""
			}
			prefix, h = prefix+x.prefix, x.next
			continue
		case *http.ServeMux:
			return joinPatterns(outer, prefix, pattern(x, r))
		}
		break
	}
	return outer
}

// strip returns the request that the inner handler gets for r, or nil if the path of r does not begin with the prefix.
func (x *stripped) strip(r *http.Request) *http.Request {
	path, cut := strings.CutPrefix(r.URL.Path, x.prefix)
	raw, cutRaw := strings.CutPrefix(r.URL.RawPath, x.prefix)
	if !cut || !cutRaw && r.URL.RawPath != "" {
		return nil
	}
	below, at := *r, *r.URL
	at.Path, at.RawPath = path, raw
	below.URL = &at
	return &below
}

// joinPatterns returns the full pattern of a route in an inner ServeMux. inner is the pattern of this route. outer is
// the pattern of the outer ServeMux whose handler is the inner ServeMux. prefix is the prefix that the outer route
// strips. The result has the method and the host of inner. If inner has no method or no host, the result has the method
// or the host of outer. If inner is empty, because no route of the inner ServeMux matches, the result is empty, too.
//
//	outer          prefix   inner              result
//	/api/          /api     GET /users/{id}    GET /api/users/{id}
//	GET a.com/     ""       /users/{id}        GET a.com/users/{id}
func joinPatterns(outer, prefix, inner string) string {
	if inner == "" {
		return ""
	}
	method, host, _ := cutPattern(outer)
	ownMethod, ownHost, path := cutPattern(inner)
	return cmp.Or(ownMethod, method) + cmp.Or(ownHost, host) + prefix + path
}

// cutPattern splits a pattern into its method, host and path. The method includes the space that follows it.
func cutPattern(pattern string) (method, host, path string) {
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, pattern = pattern[:i]+" ", strings.TrimLeft(pattern[i:], " \t")
	}
	i := strings.IndexByte(pattern, '/')
	return method, pattern[:i], pattern[i:]
}
