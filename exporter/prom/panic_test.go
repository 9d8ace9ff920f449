package prom

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A page is made in another goroutine. A panic there is one of the request all the same, so that net/http logs it with its stack; the client
// sees none of it, and the place is free again.
func TestAPanicIsTheRequests(t *testing.T) {
	h := &handler{p: new(Collector), others: prometheus.NewRegistry()} // without metrics
	h.out.init("metrics", nil)
	for range maxResponses + 1 {
		rec := httptest.NewRecorder()
		func() {
			defer func() {
				err, _ := recover().(error)
				if p := new(panicked); !errors.As(err, &p) || !strings.Contains(err.Error(), "nil pointer") || !strings.Contains(err.Error(), "gather.go") {
					t.Errorf("it panics with %v", err)
				}
			}()
			h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		}()
		if rec.Body.Len() > 0 {
			t.Errorf("the client sees %s", rec.Body)
		}
	}
}
