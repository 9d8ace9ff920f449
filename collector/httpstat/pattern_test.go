package httpstat_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Regression: all routes of a ServeMux behind a prefix were counted as one resource, /api/.
func TestInnerMuxHasFullPatterns(t *testing.T) {
	ok := func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Id", r.PathValue("id")) }
	users := http.NewServeMux()
	users.HandleFunc("GET /users/{id}", ok)
	users.HandleFunc("/{$}", ok)
	v2 := http.NewServeMux()
	v2.Handle("/v2/", httpstat.StripPrefix("/v2", users))
	whole := http.NewServeMux()
	whole.HandleFunc("/whole/{id}", ok)
	hosted := http.NewServeMux()
	hosted.HandleFunc("b.example/{id}", ok)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", ok)
	mux.Handle("/api/", httpstat.StripPrefix("/api", users))
	mux.Handle("/twice/", httpstat.StripPrefix("/twice", v2))
	mux.Handle("PUT a.example/whole/", whole)
	mux.Handle("b.example/", hosted)
	mux.Handle("/files/", httpstat.StripPrefix("/files", http.HandlerFunc(ok)))
	mux.Handle("/opaque/", http.StripPrefix("/opaque", users))
	for _, tc := range []struct{ method, target, id, want string }{
		{"GET", "/users/7", "7", "GET /users/{id}"},
		{"GET", "/api/users/7", "7", "GET /api/users/{id}"},
		{"HEAD", "/api/users/7", "7", "GET /api/users/{id}"},
		{"GET", "/api/users/a%2Fb", "a/b", "GET /api/users/{id}"},
		{"GET", "/api/", "", "/api/{$}"},
		{"POST", "/api/users/7", "", httpstat.Unmatched}, // the response is 405
		{"GET", "/api/nobody", "", httpstat.Unmatched},
		{"GET", "/twice/v2/users/7", "7", "GET /twice/v2/users/{id}"},
		{"PUT", "http://a.example/whole/7", "7", "PUT a.example/whole/{id}"},
		{"GET", "http://b.example/7", "7", "b.example/{id}"},
		{"GET", "/files/x", "", "/files/"},
		{"GET", "/opaque/users/7", "7", "/opaque/"},
	} {
		c := newCollector(t)
		rec := httptest.NewRecorder()
		httpstat.Mux(c, mux).ServeHTTP(rec, httptest.NewRequest(tc.method, tc.target, nil))
		want(t, c, map[string]string{tc.want: "1 pass, 1 complete, 0 exception, 0 in flight"})
		if id := rec.Header().Get("Id"); id != tc.id {
			t.Errorf("%s %s: id %q", tc.method, tc.target, id)
		}
	}
}

// Regression: a limit on a route of a ServeMux behind a prefix refused no request.
func TestALimitOnARouteBehindAPrefix(t *testing.T) {
	c := newCollector(t)
	if err := c.SetLimits([]collector.Limit{{Resource: "GET /api/users/{id}", Count: 0}}); err != nil {
		t.Fatal(err)
	}
	users, mux := http.NewServeMux(), http.NewServeMux()
	users.HandleFunc("GET /users/{id}", func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	mux.Handle("/api/", httpstat.StripPrefix("/api", users))
	rec := httptest.NewRecorder()
	httpstat.Mux(c, mux).ServeHTTP(rec, httptest.NewRequest("GET", "/api/users/7", nil))
	if rec.Code != http.StatusTooManyRequests {
		t.Error(rec.Code)
	}
}
