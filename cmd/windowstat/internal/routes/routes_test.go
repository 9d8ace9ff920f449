package routes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func routesOf(t *testing.T, text string) (*Routes, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "routes")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := New(false)
	r.Read(path)
	return r, path
}

// A file of routes may have a byte order mark and any line ends. It names requests like the mux of a service.
func TestRoutes(t *testing.T) {
	r, _ := routesOf(
		t,
		"\uFEFF# the shop\r\n\r\nGET /users/{id}\r\n  POST /checkout  \r\n/static/\nshop.test/\n#/commented\n"+
			"GET /files/{path...}",
	)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]string{
		"GET /users/jane":           "GET /users/{id}",
		"HEAD /users/jane":          "GET /users/{id}",
		"POST /users/jane":          "",
		"POST /checkout":            "POST /checkout",
		"GET /static/a/b":           "/static/",
		"PURGE /static/":            "/static/",
		"GET /files/a%2fb":          "GET /files/{path...}",
		"GET /nothing":              "",
		"GET http://shop.test/x":    "shop.test/",
		"GET http://Shop.TEST:80/x": "shop.test/",
	} {
		method, target, _ := strings.Cut(request, " ")
		if got := r.Name(httptest.NewRequest(method, target, nil)); got != want {
			t.Errorf("%s is %q, want %q", request, got, want)
		}
	}
	const want = "[GET /users/{id} POST /checkout /static/ shop.test/ GET /files/{path...}]"
	if got := fmt.Sprint(r.Patterns); got != want {
		t.Error(got)
	}
}

// Clients could guess passwords with requests to /static/%2e%2e/login, which the service resolved to /login. These
// requests were neither counted nor limited.
func TestRoutesCannotBeBypassed(t *testing.T) {
	r, _ := routesOf(t, "/static/\nPOST /login\nGET /users/{id}\n/{$}")
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	static, err := ParsePattern("/static/")
	if err != nil {
		t.Fatal(err)
	}
	skip := Set{static}
	for target, want := range map[string]string{
		"/static/../login": "POST /login", "/static/%2e%2e/login": "POST /login", "/static/..%2flogin": "POST /login",
		"/static/%2e%2e/%2e/x/../login": "POST /login", "/%2e/login": "POST /login", "//login": "POST /login",
		"/login/%2e%2e/static/a": "/static/", "/login/..%2fstatic%2f": "/static/", "/static/%2e%2e": "/{$}",
		"/static/%2e%2e/": "/{$}",
		"/static/a%2fb":   "/static/", "/static/.../login": "/static/", "/static/.login": "/static/",
		"/static/a..": "/static/",
	} {
		req := httptest.NewRequest("POST", target, nil)
		if got := r.Name(req); got != want {
			t.Errorf("%s is %q, want %q", target, got, want)
		}
		if got := skip.Match(req); got && want != "/static/" {
			t.Errorf("%s is skipped", target)
		}
	}
	// Set does not select paths that some services resolve to a parent directory, or paths that resemble them.
	for target, want := range map[string]bool{
		"/static/a": true, "/static/a%2fb": true, "/static/.login": true, "/static/./a;b": true,
		"/static/..;/login": false, "/static/..%3bx/login": false, "/static/..%5clogin": false,
		"/static/..%20/login": false, "/static/%252e%252e/login": false,
		"/static/%25252e%25252e/login": false, "/static/%2e%2e": false, "/login/%2e%2e/static/a": false,
		"/static/a..b": false,
	} {
		if got := skip.Match(httptest.NewRequest("POST", target, nil)); got != want {
			t.Errorf("%s is skipped: %v", target, got)
		}
	}
	if got := r.Name(httptest.NewRequest("GET", "/users/a%2fb", nil)); got != "GET /users/{id}" {
		t.Error(got)
	}
}

// All errors in a file of routes are reported together, with their lines.
func TestBadRoutes(t *testing.T) {
	r, path := routesOf(
		t,
		"GET /a/{id}\n\nGET /a/{id}\nGET /a/{name}\nGET /{x}/b\nGET a\nGET /{\n/a/{x}/{x}\nPOST  /fine\n",
	)
	r.Add("--route", "GET /a/{other}")
	err := r.Err()
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		path + `:3: "GET /a/{id}" is in ` + path + ":1 already",
		path + `:4: "GET /a/{name}" conflicts with "GET /a/{id}", ` + path + ":1: ",
		path + `:5: "GET /{x}/b" conflicts with "GET /a/{id}", ` + path + ":1: ",
		path + `:6: "GET a" is not a pattern such as GET /users/{id}: `,
		path + `:7: "GET /{" is not`,
		path + `:8: "/a/{x}/{x}" is not`,
		`--route: "GET /a/{other}" conflicts with "GET /a/{id}", ` + path + ":1: ",
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%v", len(lines), len(want), err)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) || strings.Contains(line, ".go:") {
			t.Errorf("got  %s\nwant %s…", line, want[i])
		}
	}
}

// Thousands of routes are supported.
func TestManyRoutes(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "GET /api/r%d/{id}\n", i)
	}
	r, _ := routesOf(t, b.String())
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequest("GET", "/api/r4711/x", nil)
	if got := r.Name(req); got != "GET /api/r4711/{id}" {
		t.Error(got)
	}
}
