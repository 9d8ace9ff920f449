// Package routes matches requests with patterns of http.ServeMux from the command line and from files. [Routes] names
// requests, and [Set] selects requests.
//
// [Naming] names resources for the commands that see only requests. A given route is a name from the start. The name of
// any other request consists of the method and the path. It becomes a resource only after a successful response of the
// service (see httpstat.Names), so clients cannot create resources with made-up paths.
package routes

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Routes names requests by patterns. At most one pattern matches a request. Create it with [New]. [Routes.Name] is safe
// for concurrent use after the last [Routes.Add].
//
// A ServeMux finds the pattern; its handlers are never called. If two patterns match a request, the ServeMux takes the
// more specific pattern, as in a Go service. It refuses a pattern that conflicts with an earlier one.
type Routes struct {
	// Patterns has the added patterns.
	Patterns []string

	loose bool // requests are changed by [Loose] before
	mux   *http.ServeMux
	added map[string]route // by the pattern in the mux
	errs  []error
}

// route is an added pattern: its original text and its source.
type route struct{ pattern, from string }

// New returns Routes without a pattern. With loose, the requests for Name must be results of [Loose].
func New(loose bool) *Routes {
	return &Routes{loose: loose, mux: http.NewServeMux(), added: map[string]route{}}
}

// Read adds the patterns of a file, one per line. It ignores empty lines and lines that begin with #.
func (r *Routes) Read(path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("--routes: %w", err))
		return
	}
	n := 0
	// Some editors begin a file with a byte order mark, which would become part of the first pattern.
	for line := range strings.Lines(strings.TrimPrefix(string(b), "\uFEFF")) {
		n++
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			r.Add(fmt.Sprintf("%s:%d", path, n), line)
		}
	}
}

// Add adds a pattern. If it is invalid, Add adds an error for [Routes.Err]. from is the source of the pattern in
// errors.
func (r *Routes) Add(from, pattern string) {
	key := r.key(pattern)
	if first, twice := r.added[key]; twice {
		r.errs = append(r.errs, fmt.Errorf("%s: %q is in %s already", from, pattern, first.from))
		return
	}
	if err := register(r.mux, key); err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %s", from, r.reason(pattern, err.Error())))
		return
	}
	r.Patterns, r.added[key] = append(r.Patterns, pattern), route{pattern, from}
}

// key returns the pattern for the mux: with the host in lower case, and for loose routes also the path.
func (r *Routes) key(pattern string) string {
	path := strings.IndexByte(pattern, '/')
	if path < 0 {
		return pattern // invalid
	}
	host := strings.LastIndexAny(pattern[:path], " \t") + 1
	if r.loose {
		path = len(pattern)
	}
	return pattern[:host] + strings.ToLower(pattern[host:path]) + pattern[path:]
}

// register adds a pattern to a mux. It returns the panic of the mux for an invalid pattern as an error.
func register(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

// conflict matches the message of a ServeMux about a conflict: the other pattern and the reason.
//
// The message is not part of the API of net/http. If it changes, reason returns it unchanged, as part of its last text.
var conflict = regexp.MustCompile(`(?s)conflicts with pattern "(.*?)" \(registered at [^\n]*\):\n(.*)$`)

// reason returns the reason why a ServeMux refused a pattern, without positions in Go files.
func (r *Routes) reason(pattern, message string) string {
	if m := conflict.FindStringSubmatch(message); m != nil {
		other := r.added[m[1]]
		why := strings.Join(strings.Fields(m[2]), " ")
		return fmt.Sprintf("%q conflicts with %q, %s: %s", pattern, other.pattern, other.from, why)
	}
	message = strings.TrimPrefix(message, fmt.Sprintf("parsing %q: ", r.key(pattern)))
	return fmt.Sprintf("%q is not a pattern such as GET /users/{id}: %s", pattern, message)
}

// Name returns the pattern that matches a request, or an empty text. It resolves "." and "..", also if they are written
// with %2e or %2f, because the service may do so, too. The case of the host is ignored. So a client cannot call a route
// under the name of another one.
func (r *Routes) Name(req *http.Request) string {
	u := req.URL
	if p := u.Path; strings.Contains(p+"/", "/./") || strings.Contains(p+"/", "/../") {
		clean := path.Clean("/" + p)
		if strings.HasSuffix(p, "/") && clean != "/" {
			clean += "/"
		}
		u = &url.URL{Path: clean}
	}
	_, key := r.mux.Handler(&http.Request{Method: req.Method, Host: strings.ToLower(req.Host), URL: u})
	return r.added[key].pattern
}

// Err returns the errors of all added patterns and files.
func (r *Routes) Err() error { return errors.Join(r.errs...) }

// Set selects requests that match any of its patterns. Each pattern has its own http.ServeMux, because patterns such as
// /healthz and OPTIONS / would conflict in one ServeMux.
type Set []*http.ServeMux

// ParsePattern parses a pattern of a [Set].
func ParsePattern(p string) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	if err := register(mux, p); err != nil {
		return nil, fmt.Errorf("%q is not a pattern, such as /healthz, /static/ or OPTIONS /: %w", p, err)
	}
	return mux, nil
}

// Match reports whether the set selects a request. It reports false for paths that a service may resolve to a parent
// directory, such as /static/..;/checkout or, encoded twice, /static/%252e%252e/checkout. Otherwise a client could call
// /checkout as a selected request.
func (s Set) Match(r *http.Request) bool {
	if strings.Contains(r.URL.Path, "..") || strings.Contains(r.URL.Path, "%") {
		return false
	}
	return slices.ContainsFunc(s, func(mux *http.ServeMux) bool {
		_, pattern := mux.Handler(r)
		return pattern != ""
	})
}

// Loose returns the request that a tolerant service sees. Its method is in upper case, and its path in lower case
// without slashes at the end. Each segment of the path ends before a semicolon, and has no spaces at its end. An
// encoded slash remains part of its segment.
func Loose(r *http.Request) *http.Request {
	segments := strings.Split(r.URL.EscapedPath(), "/")
	for i, s := range segments {
		s, _ = url.PathUnescape(s) // EscapedPath is valid
		s, _, _ = strings.Cut(s, ";")
		segments[i] = url.PathEscape(strings.ToLower(strings.TrimRight(s, " ")))
	}
	u := &url.URL{RawPath: cmp.Or(strings.TrimRight(strings.Join(segments, "/"), "/"), "/")}
	u.Path, _ = url.PathUnescape(u.RawPath)
	return &http.Request{Method: strings.ToUpper(r.Method), Host: r.Host, URL: u}
}
