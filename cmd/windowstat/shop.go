package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// route is one of the demo service's routes: what it is like, and how it is called.
type route struct {
	pattern string // in the mux, and so the resource
	method  string
	path    func() string
	share   float64 // of the generator's rate
	burst   bool    // its share of ten seconds comes in one of them
	handler http.HandlerFunc
}

// shop returns the routes of the demo service, of as many characters as services have.
func shop(db *database) []route {
	fixed := func(path string) func() string { return func() string { return path } }
	return []route{
		{
			pattern: "GET /{$}", method: "GET", path: fixed("/"), share: 0.30,
			handler: takes(func() time.Duration { return 2 * time.Millisecond }), // steady
		},
		{
			pattern: "GET /products/{id}", method: "GET", share: 0.30,
			path: func() string { return fmt.Sprintf("/products/%d", rand.IntN(10_000)) },
			handler: db.query("db: products", func() time.Duration { return between(1, 2) },
				takes(func() time.Duration { return between(2, 4) })),
		},
		{
			pattern: "GET /search", method: "GET", path: fixed("/search?q=shoes"), share: 0.13,
			handler: db.query("db: products", func() time.Duration { // long-tailed: half below 8 ms, one in a hundred above 80
				return min(time.Duration(8e6*math.Exp(rand.NormFloat64())), time.Second)
			}, takes(func() time.Duration { return time.Millisecond })),
		},
		{
			pattern: "POST /orders", method: "POST", path: fixed("/orders"), share: 0.10,
			handler: db.query("db: orders", func() time.Duration { return between(70, 150) }, // slow
				takes(func() time.Duration { return 10 * time.Millisecond })),
		},
		{
			pattern: "POST /payments", method: "POST", path: fixed("/payments"), share: 0.10,
			handler: func(w http.ResponseWriter, r *http.Request) { // failing
				if rand.IntN(10) == 0 {
					http.Error(w, "the bank does not answer", http.StatusServiceUnavailable)
					return
				}
				takes(func() time.Duration { return between(10, 30) })(w, r)
			},
		},
		{
			pattern: "GET /flash-sale", method: "GET", path: fixed("/flash-sale"), share: 0.05, burst: true,
			handler: takes(func() time.Duration { return time.Millisecond }),
		},
		{method: "GET", path: fixed("/favicon.ico"), share: 0.02}, // no route: counted as unmatched
	}
}

// takes is a handler that takes its time and answers.
func takes(d func() time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(d())
		fmt.Fprintln(w, "ok")
	}
}

// database is what some of the routes call, below their own entries, and what they count of it themselves.
type database struct {
	stats *collector.Collector
	mu    sync.Mutex
	calls map[string]counts
}

// query is a handler that queries the database, which takes its time, before it does the rest.
func (db *database) query(name string, d func() time.Duration, rest http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, e, err := db.stats.Enter(r.Context(), name, collector.Outbound())
		db.count(name, err)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		time.Sleep(d())
		e.Exit(nil)
		rest(w, r)
	}
}

// count counts a call as the database would.
func (db *database) count(name string, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.calls[name]
	if err != nil {
		t.block++
	} else {
		t.pass++
		t.complete++
	}
	db.calls[name] = t
}

// between is a random time between two numbers of milliseconds.
func between(lo, hi int) time.Duration {
	return time.Duration(lo)*time.Millisecond + rand.N(time.Duration(hi-lo)*time.Millisecond)
}

// shopMux serves the routes.
func shopMux(routes []route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes {
		if r.handler != nil {
			mux.Handle(r.pattern, r.handler)
		}
	}
	return mux
}
