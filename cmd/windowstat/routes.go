package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
)

// routes are patterns as http.ServeMux has them, from the command line and from files.
type routes struct {
	mux      *http.ServeMux
	patterns []string
	from     map[string]string // where a pattern stands
	errs     []error
}

func newRoutes() *routes {
	return &routes{mux: http.NewServeMux(), from: map[string]string{}}
}

// read adds the patterns of a file, one a line. Empty lines, and those that begin with #, are none.
func (r *routes) read(path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("--routes: %w", err))
		return
	}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(b), "\uFEFF")) {
		n++
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			r.add(fmt.Sprintf("%s:%d", path, n), line)
		}
	}
}

// add adds a pattern, or what is wrong with it.
func (r *routes) add(from, pattern string) {
	if first, twice := r.from[pattern]; twice {
		r.errs = append(r.errs, fmt.Errorf("%s: %q is in %s already", from, pattern, first))
		return
	}
	if err := register(r.mux, pattern); err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %s", from, r.reason(pattern, err.Error())))
		return
	}
	r.patterns, r.from[pattern] = append(r.patterns, pattern), from
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
func (r *routes) reason(pattern, message string) string {
	if m := conflict.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("%q conflicts with %q, %s: %s", pattern, m[1], r.from[m[1]], strings.Join(strings.Fields(m[2]), " "))
	}
	return fmt.Sprintf("%q is not a pattern such as GET /users/{id}: %s", pattern, strings.TrimPrefix(message, fmt.Sprintf("parsing %q: ", pattern)))
}

// name is the pattern that a request matches, empty if there is none.
func (r *routes) name(req *http.Request) string { return match(r.mux, req) }

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

// err is everything that is wrong.
func (r *routes) err() error { return errors.Join(r.errs...) }
