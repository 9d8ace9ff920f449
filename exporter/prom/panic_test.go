package prom

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
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
				if p := new(panicked); !errors.As(err, &p) || !strings.Contains(err.Error(), "nil pointer") ||
					!strings.Contains(err.Error(), "gather.go") {
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

// A metric that ends the goroutine of a page costs that page: who waits for it has an answer at once, and the next ones have places.
func TestAMetricThatEndsItsGoroutine(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := Handler(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	withdraw := c.Publish(
		collector.Metric{Name: "ends", Help: "Ends.", Value: func() float64 { runtime.Goexit(); return 0 }},
	)
	began := time.Now()
	for range maxResponses + 1 {
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil)); rec.Code != http.StatusInternalServerError ||
			!strings.Contains(rec.Body.String(), "goroutine") {
			t.Fatalf("it is %d after %v: %s", rec.Code, time.Since(began), rec.Body)
		}
	}
	withdraw()
	rec := httptest.NewRecorder()
	if h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil)); rec.Code != http.StatusOK {
		t.Errorf("without the metric it is %d", rec.Code)
	}
}
