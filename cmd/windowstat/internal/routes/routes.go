// Package routes has patterns of requests as http.ServeMux has them, from a command line and from files: [Routes] name requests, and
// [Set] is some requests.
//
// [Naming] is how the commands that see only requests name resources. A route that is given is a name from the start. Without a route the
// name is made of the method and the path, and has to be earned by answers of the service, see httpstat.Names, so that strangers who try
// paths make no resources.
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

// Routes are patterns. A request has one of them at most. It must be made with [New]. Reading them is safe for concurrent use.
type Routes struct {
	// Patterns are those that were added.
	Patterns []string

	loose bool // patterns are for requests as [Loose] makes them
	mux   *http.ServeMux
	added map[string]route // by the pattern as the mux has it
	errs  []error
}

// route is a pattern that was added: as it was written, and where.
type route struct{ pattern, from string }

// New makes Routes without a pattern. Loose ones are for requests that [Loose] has made.
func New(loose bool) *Routes {
	return &Routes{loose: loose, mux: http.NewServeMux(), added: map[string]route{}}
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

// key is a pattern as the mux has it: its host in lower case, and if the routes are loose its path.
func (r *Routes) key(pattern string) string {
	path := strings.IndexByte(pattern, '/')
	if path < 0 {
		return pattern // which is none
	}
	host := strings.LastIndexAny(pattern[:path], " \t") + 1
	if r.loose {
		path = len(pattern)
	}
	return pattern[:host] + strings.ToLower(pattern[host:path]) + pattern[path:]
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
		other := r.added[m[1]]
		return fmt.Sprintf("%q conflicts with %q, %s: %s", pattern, other.pattern, other.from, strings.Join(strings.Fields(m[2]), " "))
	}
	return fmt.Sprintf("%q is not a pattern such as GET /users/{id}: %s", pattern, strings.TrimPrefix(message, fmt.Sprintf("parsing %q: ", r.key(pattern))))
}

// Name returns the pattern that a request matches, empty if there is none. "." and ".." are resolved as the service behind may,
// written with %2e or %2f, too, and a host has no case: so nobody reaches a path by what stands for another one.
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

// Match reports whether a request is one of them. What a service may take for a path that leads up is none, however it is written,
// such as /static/..;/checkout or, encoded twice, /static/%252e%252e/checkout: what leaves a directory would be there, too.
func (s Set) Match(r *http.Request) bool {
	if strings.Contains(r.URL.Path, "..") || strings.Contains(r.URL.Path, "%") {
		return false
	}
	return slices.ContainsFunc(s, func(mux *http.ServeMux) bool {
		_, pattern := mux.Handler(r)
		return pattern != ""
	})
}

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
