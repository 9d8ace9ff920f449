package routes

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
)

// Loose returns a request as a service sees it that does not care how a path is spelled: letters in lower case, without slashes
// and spaces at the end, and without what follows a semicolon in a segment; its method is in upper case. An encoded slash remains part
// of its segment.
func Loose(r *http.Request) *http.Request {
	segments := strings.Split(r.URL.EscapedPath(), "/")
	for i, s := range segments {
		s, _ = url.PathUnescape(s) // which cannot fail
		s, _, _ = strings.Cut(s, ";")
		segments[i] = url.PathEscape(strings.ToLower(strings.TrimRight(s, " ")))
	}
	u := &url.URL{RawPath: cmp.Or(strings.TrimRight(strings.Join(segments, "/"), "/"), "/")}
	u.Path, _ = url.PathUnescape(u.RawPath)
	return &http.Request{Method: strings.ToUpper(r.Method), Host: r.Host, URL: u}
}
