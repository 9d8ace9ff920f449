// Package routes has patterns of requests as http.ServeMux has them, from a command line and from files: [Routes] name requests, and
// [Set] is some requests.
package routes

import (
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

// Routes are patterns. A request has one of them at most. It must be made with [New]. Reading them is safe for concurrent use.
type Routes struct {
	// Patterns are those that were added.
	Patterns []string

	mux  *http.ServeMux
	from map[string]string // where a pattern stands
	errs []error
}

// New makes Routes without a pattern.
func New() *Routes {
	return &Routes{mux: http.NewServeMux(), from: map[string]string{}}
}

// Read adds the patterns of a file, one a line. Empty lines, and those that begin with #, are none.
func (r *Routes) Read(path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("--routes: %w", err))
		return
	}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(b), "\uFEFF")) {
		n++
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			r.Add(fmt.Sprintf("%s:%d", path, n), line)
		}
	}
}

// Add adds a pattern, or what is wrong with it. The text from says where it stands, in errors.
func (r *Routes) Add(from, pattern string) {
	if first, twice := r.from[pattern]; twice {
		r.errs = append(r.errs, fmt.Errorf("%s: %q is in %s already", from, pattern, first))
		return
	}
	if err := register(r.mux, pattern); err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %s", from, r.reason(pattern, err.Error())))
		return
	}
	r.Patterns, r.from[pattern] = append(r.Patterns, pattern), from
}

// register adds a pattern to a mux, which panics if it cannot have that.
func register(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

// conflict finds the other pattern in what a ServeMux says of a conflict, and why.
var conflict = regexp.MustCompile(`(?s)conflicts with pattern "(.*?)" \(registered at [^\n]*\):\n(.*)$`)

// reason is why a ServeMux refuses a pattern.
func (r *Routes) reason(pattern, message string) string {
	if m := conflict.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("%q conflicts with %q, %s: %s", pattern, m[1], r.from[m[1]], strings.Join(strings.Fields(m[2]), " "))
	}
	return fmt.Sprintf("%q is not a pattern such as GET /users/{id}: %s", pattern, strings.TrimPrefix(message, fmt.Sprintf("parsing %q: ", pattern)))
}

// Name returns the pattern that a request matches, empty if there is none.
func (r *Routes) Name(req *http.Request) string { return match(r.mux, req) }

// match is the pattern of a mux that a request matches, empty if there is none. "." and ".." are resolved as the service behind
// may, written with %2e or %2f, too: so nobody reaches a path by what stands for another one.
func match(mux *http.ServeMux, r *http.Request) (pattern string) {
	if p := r.URL.Path; strings.Contains(p+"/", "/./") || strings.Contains(p+"/", "/../") {
		clean := path.Clean("/" + p)
		if strings.HasSuffix(p, "/") && clean != "/" {
			clean += "/"
		}
		r = &http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: clean}}
	}
	_, pattern = mux.Handler(r)
	return pattern
}

// Err returns everything that is wrong with what was added.
func (r *Routes) Err() error { return errors.Join(r.errs...) }

// Set is the requests that match any of some patterns: an http.ServeMux for each, because some that may stand side by side here, such
// as /healthz and OPTIONS /, are a conflict in one.
type Set []*http.ServeMux

// ParsePattern parses a pattern of a [Set].
func ParsePattern(p string) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	if err := register(mux, p); err != nil {
		return nil, fmt.Errorf("%q is not a pattern, such as /healthz, /static/ or OPTIONS /: %w", p, err)
	}
	return mux, nil
}

// Match reports whether a request is one of them.
func (s Set) Match(r *http.Request) bool {
	return slices.ContainsFunc(s, func(mux *http.ServeMux) bool { return match(mux, r) != "" })
}
