package httpstat

import (
	"cmp"
	"net/http"
	"strings"
)

// StripPrefix is http.StripPrefix, with which a [Mux] knows the whole route where h is an http.ServeMux: for
//
//	mux.Handle("/api/", httpstat.StripPrefix("/api", users))
//
// a request is counted for "GET /api/users/{id}", and behind http.StripPrefix, which nobody can look into, for "/api/".
func StripPrefix(prefix string, h http.Handler) http.Handler {
	return &stripped{Handler: http.StripPrefix(prefix, h), prefix: prefix, next: h}
}

type stripped struct {
	http.Handler
	prefix string
	next   http.Handler
}

// pattern is the whole pattern that a request matches, empty if it matches none.
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
			return under(outer, prefix, pattern(x, r))
		}
		break
	}
	return outer
}

// strip is the request as the handler behind gets it, nil if it gets none.
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

// under is the pattern of a mux below another one's: its path behind the prefix, with its own method and host, or those of the
// pattern above.
func under(outer, prefix, inner string) string {
	if inner == "" {
		return ""
	}
	method, host, _ := cutPattern(outer)
	ownMethod, ownHost, path := cutPattern(inner)
	return cmp.Or(ownMethod, method) + cmp.Or(ownHost, host) + prefix + path
}

// cutPattern cuts a pattern into its method, with a space behind, its host and its path.
func cutPattern(pattern string) (method, host, path string) {
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, pattern = pattern[:i]+" ", strings.TrimLeft(pattern[i:], " \t")
	}
	i := strings.IndexByte(pattern, '/')
	return method, pattern[:i], pattern[i:]
}
