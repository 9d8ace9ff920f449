package routes

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector/httpstat"
)

// Tolerant services treat all these paths as a route with a limit. Clients could use them to bypass the limit.
func TestLoosePaths(t *testing.T) {
	n := Naming{
		Patterns:  []string{"POST /checkout", "GET /Users/{id}", "/static/", "Shop.test/Only", "/{$}"},
		Loose:     true,
		Depth:     4,
		MaxValues: 10,
	}
	if err := n.Check(); err != nil {
		t.Fatal(err)
	}
	name := n.Name()
	for request, want := range map[string]string{
		"POST /checkout": "POST /checkout", "POST /checkout/": "POST /checkout", "POST /Checkout//": "POST /checkout",
		"POST /checkout;x=1": "POST /checkout",
		"POST /checkout%20":  "POST /checkout", "post /checkout": "POST /checkout",
		"POST /CHECKOUT%3BX/%20/;y": "POST /checkout",
		"POST /static/..;/checkout": "POST /checkout", "POST /static/..%20/checkout/": "POST /checkout",
		"POST /%63heckout/.": "POST /checkout",
		"GET /users/5/":      "GET /Users/{id}", "get /USERS/5": "GET /Users/{id}", "HEAD /users/5": "GET /Users/{id}",
		"GET /users/a%2fb": "GET /Users/{id}",
		"GET /users;v=2/5": "GET /Users/{id}", "GET /users/5/x": "GET /users/:id/x", "GET /users/": "GET /users",
		"GET /users/a%2f%2e%2e%2fb": "GET /Users/{id}",
		"GET /static":               "/static/", "GET /Static/": "/static/", "GET /static/a/B": "/static/",
		"GET /":   "/{$}",
		"GET /;x": "/{$}", "OPTIONS *": "OPTIONS /*",
		"GET http://SHOP.test/only": "Shop.test/Only", "GET /Other/Words/": "GET /other/words",
	} {
		method, target, _ := strings.Cut(request, " ")
		r := httptest.NewRequest(method, target, nil)
		if got := name(r); got != want {
			t.Errorf("%s is %q, want %q", request, got, want)
		}
		if r.Method != method || r.RequestURI != target {
			t.Errorf("%s was changed to %s %s", request, r.Method, r.RequestURI)
		}
	}
	if got := n.Given(); got[1] != "GET /Users/{id}" || got[len(got)-1] != httpstat.Unmatched {
		t.Error(got)
	}
}

// Patterns that differ only in case are equal for a tolerant service. Errors show them as they were written.
func TestLoosePatternsConflict(t *testing.T) {
	r := New(true)
	r.Add("a", "GET /Users/{id}")
	r.Add("b", "GET /users/{id}")
	r.Add("c", "GET /users/{Name}")
	err := r.Err()
	if err == nil ||
		!strings.HasPrefix(
			err.Error(),
			`b: "GET /users/{id}" is in a already`+"\n"+`c: "GET /users/{Name}" conflicts with "GET /Users/{id}", a: `,
		) {
		t.Error(err)
	}
}
