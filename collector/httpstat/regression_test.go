package httpstat_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Each test in this file covers a defect that package httpstat had.

// ways lists functions that do not return normally. Each function runs in a separate goroutine, like a handler in
// net/http.
var ways = map[string]func(){
	"panic":  func() { panic("boom") },
	"Goexit": runtime.Goexit,
}

// alone runs f in a separate goroutine, and waits until this goroutine ends. It returns the value with which f
// panicked, or nil if f did not panic.
func alone(f func()) (panicked any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		f()
	}()
	<-done
	return panicked
}

// Regression: a Trace function that panicked left its request in flight. With a concurrency limit of two, all requests
// after two such requests were refused. No function that a service passes to httpstat may have this effect, whether it
// panics or ends its goroutine.
func TestRegressionRequestsWhoseTracePanickedExhaustedALimit(t *testing.T) {
	for way, end := range ways {
		for _, place := range []string{"name", "origin", "trace", "handler", "refused", "exception", "class"} {
			t.Run(place+" "+way, func(t *testing.T) {
				broken := place
				at := func(here string) {
					if here == broken {
						end()
					}
				}
				tell := func(here string) func(*http.Request) string {
					return func(*http.Request) string { at(here); return here }
				}
				c, err := collector.New(collector.Options{
					Exception:      func(error) bool { at("exception"); return true },
					ExceptionClass: func(error) string { at("class"); return "" },
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := c.SetLimits([]collector.Limit{
					{Resource: "name", Grade: collector.Concurrency, Count: 2}, {
						Resource: "name", Origin: "full",
						Count: 0,
					},
				}); err != nil {
					t.Fatal(err)
				}
				refused := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { at("refused") })
				h := httpstat.Handler(c, tell("name"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					at("handler")
					w.WriteHeader(http.StatusInternalServerError)
				}), httpstat.Trace(tell("trace")), httpstat.Refused(refused),
					httpstat.Origin(func(r *http.Request) string {
						at("origin")
						return r.Header.Get("Client")
					}))
				send := func() int {
					rec := httptest.NewRecorder()
					r := httptest.NewRequest("GET", "/", nil)
					if broken == "refused" {
						r.Header.Set("Client", "full")
					}
					if got := alone(func() { h.ServeHTTP(rec, r) }); broken != "" && way == "panic" && got != "boom" {
						t.Errorf("the panic that came out is %v", got)
					}
					return rec.Code
				}
				for range 3 {
					send()
				}
				broken = ""
				if status := send(); status != http.StatusInternalServerError {
					t.Errorf("the next request got %d", status)
				}
				s := c.Resource("name").Snapshot(nil)
				if s.InFlight != 0 || s.Total.Pass != s.Total.Complete || s.Total.Exception != s.Total.Pass {
					t.Errorf("%d in flight, %+v", s.InFlight, s.Total)
				}
			})
		}
	}
}

// Regression: with the option Refused(nil), the first refused request panicked.
func TestRegressionRefusedByNilPanicked(t *testing.T) {
	c := newCollector(t)
	if err := c.SetLimits([]collector.Limit{{Resource: "*", Count: 0}}); err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	httpstat.Route(
		c, "a", http.NotFoundHandler(), httpstat.Refused(nil),
	).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	if rec.Code != http.StatusTooManyRequests || rec.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
}
