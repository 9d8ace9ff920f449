// Package demo is what windowstat demo runs: a shop, a generator of requests to it, and a comparison of what was sent with what
// was counted, scraped and logged.
//
// The shop is instrumented as any service is: by httpstat around its routes, by Entries around its database, and by limits. The generator
// sends real requests over the loopback interface, at a rate that does not depend on the answers, and counts what it got. At the end
// all observers must have the same numbers for each resource, or the exit status is 1. So the demo is also a test of the installed
// binary on the machine where it runs.
//
// An incident breaks the shop for half a minute in one of three known ways. What each looks like, second by second, is told in
// docs/incidents.md, and is what dashboards, alerts, the onset of windowstat log and the report can be tried on.
package demo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Shop is an HTTP service whose routes are of different character, and the load on it. It must be made with [NewShop].
type Shop struct {
	stats  *collector.Collector
	routes []route
	rate   float64
	sent   observer // what was sent, as it was answered, and what was asked of the database
	breaks *incident
}

// NewShop makes a shop that counts with a Collector, for so many requests a second over all routes. One of [Incidents] begins with the
// second of a time; none if it is empty.
func NewShop(c *collector.Collector, rate float64, incidentName string, from time.Time) *Shop {
	from = from.Truncate(time.Second)
	breaks := &incident{incidentName, from, from.Add(incidentLength), make(chan struct{})}
	s := &Shop{stats: c, rate: rate, sent: observer{seen: map[string]counts{}}, breaks: breaks}
	s.routes = s.allRoutes()
	return s
}

// Handler serves the routes. They differ in what they do to the views: some are quick, some slow, some fail, and some come in bursts.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes {
		if r.handler != nil {
			mux.Handle(r.pattern, r.handler)
		}
	}
	return httpstat.Mux(s.stats, mux, httpstat.OriginHeader(clientHeader))
}

// Limits are those of the shop if there are no others: the flash sale's burst, half the rate in one second, is a little too much
// for it.
func (s *Shop) Limits() []collector.Limit {
	return []collector.Limit{{Resource: "GET /flash-sale", Count: max(int64(s.rate*0.4), 1)}}
}

// productsShare is the share of the rate that products have, which a limit may be too low for.
const productsShare = 0.30

// route is one of the demo service's routes: what it is like, and how it is called.
type route struct {
	pattern string // in the mux, and so the resource
	method  string
	path    func() string
	share   float64 // of the generator's rate
	burst   bool    // its share of ten seconds comes in one of them
	handler http.HandlerFunc
}

// allRoutes returns routes of as many characters as services have.
func (s *Shop) allRoutes() []route {
	fixed := func(path string) func() string { return func() string { return path } }
	return []route{
		{
			pattern: "GET /{$}", method: "GET", path: fixed("/"), share: 0.30,
			handler: takes(between(2, 2)), // steady
		},
		{
			pattern: "GET /products/{id}", method: "GET", share: productsShare,
			path:    func() string { return fmt.Sprintf("/products/%d", rand.IntN(10_000)) },
			handler: s.query("db: products", between(1, 2), takes(between(2, 4))),
		},
		{
			pattern: "GET /search", method: "GET", path: fixed("/search?q=shoes"), share: 0.13,
			handler: s.query("db: products", func() time.Duration { // long-tailed: half below 8 ms, one in a hundred above 80
				return min(time.Duration(8e6*math.Exp(rand.NormFloat64())), time.Second)
			}, takes(between(1, 1))),
		},
		{
			pattern: "POST /orders", method: "POST", path: fixed("/orders"), share: 0.10,
			handler: s.query("db: orders", between(70, 150), takes(between(10, 10))), // slow
		},
		{
			pattern: "POST /payments", method: "POST", path: fixed("/payments"), share: 0.10,
			handler: func(w http.ResponseWriter, r *http.Request) { // failing
				if s.breaks.now(retries) || rand.IntN(10) == 0 {
					http.Error(w, "the bank does not answer", http.StatusServiceUnavailable)
					return
				}
				takes(between(10, 30))(w, r)
			},
		},
		{
			pattern: "GET /flash-sale", method: "GET", path: fixed("/flash-sale"), share: 0.05, burst: true,
			handler: takes(between(1, 1)),
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

// query is a handler that queries the database, which takes its time, before it does the rest. The query is a call below that of the route.
func (s *Shop) query(name string, d func() time.Duration, rest http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, e, err := s.stats.Enter(r.Context(), name, collector.Outbound())
		s.sent.count(name, err != nil, false)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		time.Sleep(d())
		if name == "db: products" && s.breaks.now(hang) {
			sleep(time.Until(s.breaks.to), s.breaks.over)
		}
		e.Exit(nil)
		rest(w, r)
	}
}

// between tells random times between two numbers of milliseconds.
func between(lo, hi time.Duration) func() time.Duration {
	return func() time.Duration { return lo*time.Millisecond + rand.N((hi-lo)*time.Millisecond+1) }
}
