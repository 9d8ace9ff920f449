package live_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// The service serves the page on its own mux.
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

// A recording of three seconds of one resource is a file that opens without a server.
func ExampleRecording() {
	search := live.Recorded{
		Name:        "GET /search",
		Pass:        []int64{10, 40, 12},
		Block:       []int64{0, 8, 0},
		Complete:    []int64{10, 40, 12},
		Exception:   []int64{0, 0, 1},
		RT:          []int64{4000, 9000, 4100}, // microseconds
		InFlightMax: []int64{2, 9, 2},
		Limits:      []collector.Limit{{Resource: "GET /search", Count: 40}},
	}
	r := live.Recording{
		Title:     "A burst",
		First:     1767323045,
		Seconds:   3,
		Total:     search,
		Resources: []live.Recorded{search},
	}
	var page bytes.Buffer // usually a file
	if err := r.WriteHTML(&page); err != nil {
		panic(err)
	}
	fmt.Println(page.Len() < 200_000, bytes.Contains(page.Bytes(), []byte("<title>A burst</title>")))
	// Output: true true
}
