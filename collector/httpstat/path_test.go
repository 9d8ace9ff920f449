package httpstat_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector/httpstat"
)

var discard = log.New(io.Discard, "", 0)

// PathName resolves the segments "." and ".." of paths, because services do the same. Otherwise clients could add such
// segments to get a resource to which no limit applies.
func TestDotsAreResolved(t *testing.T) {
	for _, path := range []string{
		"/./admin", "/x/../admin", "/a/b/c/d/../../../../admin", "/../../admin",
		"//admin/.", "/x/../../admin/",
	} {
		if got := httpstat.CollapsePath(path, 2); got != "/admin" {
			t.Errorf("%s is %s", path, got)
		}
	}
	r := httptest.NewRequest("GET", "/x%2f..%2fadmin", nil)
	if got := httpstat.PathName(0)(r); got != "GET /admin" {
		t.Error(got)
	}
}

func TestCollapsePath(t *testing.T) {
	for path, want := range map[string]string{
		"":                 "/",
		"/":                "/",
		"//":               "/",
		"/users":           "/users",
		"/users/":          "/users",
		"//users//4711":    "/users/:id",
		"/users/4711/edit": "/users/:id/edit",
		"/users/2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d":    "/users/:id",
		"/users/2C5EA4C0-4067-11E9-8BAD-9B1DEB4D3B7D":    "/users/:id",
		"/users/00000000-0000-0000-0000-000000000000":    "/users/:id",
		"/blob/da39a3ee5e6b4b0d3255bfef95601890afd80709": "/blob/:id",
		"/blob/deadbeef1":                    "/blob/:id",
		"/blob/deadbeef":                     "/blob/deadbeef", // no digit: may be a word
		"/c/facade":                          "/c/facade",
		"/v1/items":                          "/v1/items",
		"/orders/01ARZ3NDEKTSV4RRFFQ69G5FAV": "/orders/:id",
		"/orders/V1StGXR8_Z5jdHi6B-myT":      "/orders/V1StGXR8_Z5jdHi6B-myT", // two separators: may be words
		"/posts/10-things-you-should-know":   "/posts/10-things-you-should-know",
		"/static/app.4711.js":                "/static/app.4711.js",
		"/a/b/c/d":                           "/a/b/c/d",
		"/a/b/c/d/":                          "/a/b/c/d",
		"/a/b/c/d/e/f":                       "/a/b/c/d/*",
		"/" + strings.Repeat("x", 49):        "/:id",
		"/" + strings.Repeat("x", 100_000):   "/:id",
		"/ü/a|b\n\x00":                       "/ü/a_b__",
		"/r/2024-01-31":                      "/r/:id",
		"/r/31.01.2024":                      "/r/:id",
		"/r/2024_12":                         "/r/:id",
		"/r/2024-01-31T10:20:30.5Z":          "/r/:id",
		"/r/2024-13-01":                      "/r/2024-13-01",
		"/r/2024-01-31-how-it-went":          "/r/2024-01-31-how-it-went",
		"/u/jane.doe+x@mail.example.org":     "/u/:id",
		"/@scope/pkg@latest":                 "/@scope/pkg@latest",
		"/t/eyJhbGciOiJub25lIn0.eyJhIjoxfQ.": "/t/:id",
		"/t/eyJ.js":                          "/t/eyJ.js",
	} {
		if got := httpstat.CollapsePath(path, 0); got != want {
			t.Errorf("CollapsePath(%.60q) = %q, want %q", path, got, want)
		}
	}
	if got := httpstat.CollapsePath("/a/1/b/2", 2); got != "/a/:id/*" {
		t.Errorf("depth 2: %q", got)
	}
}

func TestPathName(t *testing.T) {
	name := httpstat.PathName(3)
	for _, tc := range []struct{ method, path, want string }{
		{"GET", "/users/1?q=2", "GET /users/:id"},
		{"PURGE", "/x", "OTHER /x"},
		{"get", "/x", "OTHER /x"},
		{"DELETE", "/a/b/c/d", "DELETE /a/b/c/*"},
	} {
		r := httptest.NewRequest("GET", tc.path, nil)
		r.Method = tc.method
		if got := name(r); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.method, tc.path, got, tc.want)
		}
	}
	if got := name(&http.Request{URL: httptest.NewRequest("GET", "/x", nil).URL}); got != "GET /x" {
		t.Errorf("no method: %q", got)
	}
}

func FuzzCollapsePath(f *testing.F) {
	f.Add("/users/4711", 2)
	f.Fuzz(func(t *testing.T, path string, depth int) {
		depth %= 20
		got := httpstat.CollapsePath(path, depth)
		if depth < 1 {
			depth = httpstat.DefaultDepth
		}
		if !strings.HasPrefix(got, "/") || strings.Contains(got, "//") || strings.Count(got, "/") > depth+1 ||
			len(got) > (depth+1)*49 {
			t.Errorf("CollapsePath(%q, %d) = %q", path, depth, got)
		}
		if again := httpstat.CollapsePath(got, depth+1); again != got {
			t.Errorf("%q collapses again, to %q", got, again)
		}
	})
}

// If path.Clean returns the same result for two paths, their names are equal.
func FuzzPathsOfBytes(f *testing.F) {
	for _, p := range []string{
		"/", "", "//a//b/", "/a/./b/../c", "a/b/c/d/e/f/../../..", "/users/4711/",
		"/x|y\x00", "/..", "/a/b/c/d/..",
	} {
		f.Add(p, 3)
	}
	f.Fuzz(func(t *testing.T, p string, depth int) {
		got, want := httpstat.CollapsePath(p, depth), httpstat.CollapsePath(path.Clean("/"+p), depth)
		if got != want || !strings.HasPrefix(got, "/") {
			t.Errorf("%q is %q, cleaned %q", p, got, want)
		}
		if name := string(httpstat.AppendPathName(nil, []byte("get"), []byte(p), depth)); name != "OTHER "+want {
			t.Errorf("%q is named %q", p, name)
		}
	})
}
