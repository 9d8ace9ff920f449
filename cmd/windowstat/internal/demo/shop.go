// Package demo implements windowstat demo: a shop, a generator of requests to it, and a comparison of the sent calls
// with the counted, scraped and logged ones.
//
// The shop is instrumented like any service: with httpstat for its routes, with Entries for its database, and with
// limits. The generator sends real requests over the loopback interface, at a rate that does not depend on the
// responses, and counts the responses. At the end all observers must have the same numbers for each resource, or the
// exit status is 1. So the demo also tests the installed binary on a machine.
//
// An incident breaks the shop for half a minute in one of three ways. docs/incidents.md describes each of them second
// by second. Dashboards, alerts, windowstat onset and windowstat report can be tried with them.
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

// Shop is an HTTP service with different kinds of routes, and the load on it. Create it with [NewShop].
type Shop struct {
	stats    *collector.Collector
	routes   []route
	rate     float64
	sent     observer // sent requests by their responses, and queries of the database
	incident *incident
}

// NewShop returns a shop that counts with c. rate is the number of requests per second over all routes. The incident
// with the name, one of [Incidents], begins in the second of from. Without a name there is no incident.
func NewShop(c *collector.Collector, rate float64, incidentName string, from time.Time) *Shop {
	from = from.Truncate(time.Second)
	broken := &incident{incidentName, from, from.Add(incidentLength), make(chan struct{})}
	s := &Shop{stats: c, rate: rate, sent: observer{seen: map[string]counts{}}, incident: broken}
	s.routes = s.allRoutes()
	return s
}

// Handler serves the routes. Some are fast, some are slow, some fail, and some have bursts.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes {
		if r.handler != nil {
			mux.Handle(r.pattern, r.handler)
		}
	}
	return httpstat.Mux(s.stats, mux, httpstat.OriginHeader(clientHeader))
}

// Limits returns the default limits of the shop. A burst of the flash sale is half of the rate in one second. Its limit
// is higher by a fifth, so the alerts on limits do not fire without an incident.
func (s *Shop) Limits() []collector.Limit {
	return []collector.Limit{{Resource: "GET /flash-sale", Count: max(int64(s.rate*0.6), 1)}}
}

// productsShare is the share of products in the rate. The incident lowLimit needs it.
const productsShare = 0.30

// paymentsPerFailure is the average number of payments for one that fails. The alerts on the error budget begin at six
// in a thousand, so they do not fire without an incident.
const paymentsPerFailure = 500

// route is a route of the shop, and the load on it.
type route struct {
	pattern string // in the mux, and the name of the resource
	method  string
	path    func() string
	share   float64 // of the generator's rate
	burst   bool    // all requests of ten seconds are sent in one of them
	handler http.HandlerFunc
}

// allRoutes returns routes of the kinds that services have.
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
			handler: s.query(
				"db: products",
				func() time.Duration { // a long tail: half below 8 ms, one percent above 80 ms
					return min(time.Duration(8e6*math.Exp(rand.NormFloat64())), time.Second)
				},
				takes(between(1, 1)),
			),
		},
		{
			pattern: "POST /orders", method: "POST", path: fixed("/orders"), share: 0.10,
			handler: s.query("db: orders", between(70, 150), takes(between(10, 10))), // slow
		},
		{
			pattern: "POST /payments", method: "POST", path: fixed("/payments"), share: 0.10,
			handler: func(w http.ResponseWriter, r *http.Request) { // failing, within the error budget
				if s.incident.active(retries) || rand.IntN(paymentsPerFailure) == 0 {
					http.Error(w, "the bank does not respond", http.StatusServiceUnavailable)
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

// takes returns a handler that responds after a duration.
func takes(d func() time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(d())
		fmt.Fprintln(w, "ok")
	}
}

// query returns a handler that queries the database, which takes a duration, and then calls rest. The query is an
// outbound call within the call of the route.
func (s *Shop) query(name string, d func() time.Duration, rest http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, e, err := s.stats.Enter(r.Context(), name, collector.Outbound())
		s.sent.count(name, err != nil, false)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		time.Sleep(d())
		if name == "db: products" && s.incident.active(hang) {
			sleep(time.Until(s.incident.to), s.incident.over)
		}
		e.Exit(nil)
		rest(w, r)
	}
}

// between returns a function that returns random durations between lo and hi milliseconds.
func between(lo, hi time.Duration) func() time.Duration {
	return func() time.Duration { return lo*time.Millisecond + rand.N((hi-lo)*time.Millisecond+1) }
}
