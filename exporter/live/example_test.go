package live_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// The page on a mux of the service's own.
func Example() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	page, err := live.New(c, live.Options{Title: "shop"})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/live/", page)

	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, httptest.NewRequest("GET", "/live/", nil))
	fmt.Println(rec.Code, rec.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
