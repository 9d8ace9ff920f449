package httpstat_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/windowstat/windowstat/collector/httpstat"
)

// recoverer is middleware that responds to panics with 500, except for http.ErrAbortHandler, as the recoverers of
// frameworks do.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch reason := recover(); reason {
			case nil:
			case http.ErrAbortHandler:
				panic(reason)
			default:
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// If outer middleware recovers the panic of a handler and responds with 500, the option Recovered(500) gives the
// request the code 500. If inner middleware recovers the panic, httpstat sees the response of this middleware. The
// request then has the code of this response, even without the option.
func TestRecovered(t *testing.T) {
	for _, tc := range []struct {
		handler string
		do      func(w http.ResponseWriter)
		code    string
	}{
		{"panics", func(http.ResponseWriter) { panic("boom") }, "500"},
		{"panics with nil", func(http.ResponseWriter) { panic(nil) }, "500"},
		{"aborts", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, ""},
		{"panics after 202", func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted); panic("boom") }, "202"},
	} {
		for _, outside := range []bool{true, false} {
			c := newCollector(t)
			h := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tc.do(w) }))
			if outside {
				h = recoverer(httpstat.Route(c, "a", h, httpstat.Recovered(http.StatusInternalServerError)))
			} else {
				h = httpstat.Route(c, "a", recoverer(h))
			}
			rec := httptest.NewRecorder()
			reason := alone(func() { h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil)) })
			if (reason == http.ErrAbortHandler) != (tc.handler == "aborts") {
				t.Errorf("%s, recoverer outside %t: the panic that came out is %v", tc.handler, outside, reason)
			}
			got := answered(t, c)
			if want := map[string]int64{tc.code: 1}; !maps.Equal(got, want) {
				t.Errorf("%s, recoverer outside %t: codes %v, want %v", tc.handler, outside, got, want)
			}
			// If inner middleware recovers a panic after the handler has written 202, the request is not an exception.
			exceptions := int64(1)
			if !outside && tc.code == "202" {
				exceptions = 0
			}
			if s := c.Resource("a").Snapshot(nil); s.Total.Exception != exceptions || s.InFlight != 0 {
				t.Errorf("%s, recoverer outside %t: %+v, %d in flight", tc.handler, outside, s.Total, s.InFlight)
			}
		}
	}
}

// A request to Route takes two allocations: one for the context, and one for the copied request and the wrapped writer.
func TestRouteTakesTwoAllocations(t *testing.T) {
	c := newCollector(t)
	h := httpstat.Route(c, "a", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, w := range map[string]http.ResponseWriter{"plain": plain{}, "of HTTP/1": struct {
		plain
		http.Flusher
		http.Hijacker
		io.ReaderFrom
	}{}} {
		r := httptest.NewRequest("GET", "/", nil)
		if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n > 2 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
