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

// A page is computed in a separate goroutine. A panic there panics in the goroutine of the request, so net/http logs it
// with its stack. The client sees none of it, and the slot is released.
func TestPanicReachesTheRequest(t *testing.T) {
	h := &handler{p: new(Collector), others: prometheus.NewRegistry()} // without metrics
	h.out.init("metrics", nil)
	for range maxResponses + 1 {
		rec := httptest.NewRecorder()
		func() {
			defer func() {
				err, _ := recover().(error)
				if p := new(panicked); !errors.As(err, &p) || !strings.Contains(err.Error(), "nil pointer") ||
					!strings.Contains(err.Error(), "gather.go") {
					t.Errorf("panic with %v", err)
				}
			}()
			h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		}()
		if rec.Body.Len() > 0 {
			t.Errorf("the client sees %s", rec.Body)
		}
	}
}

// A metric that ends the goroutine of a page fails that page: the waiting requests get an error response immediately,
// and later requests get slots.
func TestMetricEndsItsGoroutine(t *testing.T) {
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
			t.Fatalf("status %d after %v: %s", rec.Code, time.Since(began), rec.Body)
		}
	}
	withdraw()
	rec := httptest.NewRecorder()
	if h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil)); rec.Code != http.StatusOK {
		t.Errorf("status %d without the metric", rec.Code)
	}
}
