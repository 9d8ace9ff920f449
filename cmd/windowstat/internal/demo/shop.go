// Package demo implements windowstat demo: a shop, a generator of requests to it, and a comparison of the sent calls
// with the counted, scraped and logged ones.
//
// The shop is instrumented like any service: with httpstat for its routes, with Entries for its database, and with
// limits. The generator sends real requests over the loopback interface and counts the responses. It does not wait for
// responses, so a slow shop gets as many requests as a fast one. At the end all observers must have the same numbers
// for each resource, or the exit status is 1. So the demo also tests the installed binary on a machine.
//
//	generator ── HTTP ──▶ shop ── Entries ──▶ "database"
//	    │                  │
//	  sent            Collector: counted
//	    │              │             │
//	    │         metrics page   metric log
//	    │           scraped        logged
//	    └───────────────┴── compare ─┘
//
// An incident breaks the shop for half a minute in one of three ways. docs/incidents.md describes each of them second
// by second. A user can try the dashboards, the alerts, windowstat onset and windowstat report with them.
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

// Shop is an HTTP service with different kinds of routes, and the load on it. Create it with [NewShop]; serve its
// Handler, and then call [Shop.Load] and [Shop.Reconcile].
type Shop struct {
	// stats counts the calls of the shop. The comparison prints its numbers in the column counted.
	stats  *collector.Collector
	routes []route
	// rate is the number of requests per second over all routes. Each route has a share of it.
	rate     float64
	sent     observer // requests and queries of the database, by their results
	incident *incident
}

// NewShop returns a shop that counts its calls with c. rate is the number of requests per second over all routes. The
// incident named incidentName, one of [Incidents], begins in the second of from. If the name is empty, there is no
// incident.
func NewShop(c *collector.Collector, rate float64, incidentName string, from time.Time) *Shop {
	from = from.Truncate(time.Second)
	broken := &incident{incidentName, from, from.Add(incidentLength), make(chan struct{})}
	s := &Shop{stats: c, rate: rate, sent: observer{seen: map[string]counts{}}, incident: broken}
	s.routes = s.allRoutes()
	return s
}

// Handler serves the routes and counts their calls. Some routes are fast, some are slow, some fail, and one has bursts.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes {
		if r.handler != nil {
			mux.Handle(r.pattern, r.handler)
		}
	}
	return httpstat.Mux(s.stats, mux, httpstat.OriginHeader(clientHeader))
}

// Limits returns the usual limits of the shop. A burst of the flash sale has half of the rate in one second. Its limit
// is a fifth higher than a burst, so the alerts on limits do not fire without an incident.
func (s *Shop) Limits() []collector.Limit {
	return []collector.Limit{{Resource: "GET /flash-sale", Count: max(int64(s.rate*0.6), 1)}}
}

// productsShare is the share of GET /products/{id} in the rate. The incident limit computes its limit from it.
const productsShare = 0.30

// paymentsPerFailure is the average number of payments per failed one. Two of a thousand fail, and the alerts on the
// error budget begin at six, so they do not fire without an incident.
const paymentsPerFailure = 500

// route is a route of the shop, and the load on it.
type route struct {
	// pattern is empty for requests that match no route.
	pattern string // in the mux; the name of the resource
	method  string
	path    func() string // returns the path of the next request
	share   float64       // of the generator's rate
	burst   bool          // send the requests of ten seconds within one of them
	// handler is nil if the mux must respond with 404.
	handler http.HandlerFunc
}

// allRoutes returns the routes. Each one is typical of a kind that services have.
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
				// The status of a failure is 503, which the default rule of httpstat counts as an exception.
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

// takes returns a handler that waits for a duration and then responds.
func takes(d func() time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(d())
		fmt.Fprintln(w, "ok")
	}
}

// query returns a handler that first queries the database and then calls rest. The query takes the duration d, and is
// counted as an outbound call within the call of the route. A blocked query fails the request.
func (s *Shop) query(name string, d func() time.Duration, rest http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, e, err := s.stats.Enter(r.Context(), name, collector.Outbound())
		s.sent.count(name, err != nil, false)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		time.Sleep(d())
		// The query hangs until the incident ends. At the end of the load it returns earlier, so the demo can stop.
		if name == "db: products" && s.incident.active(hang) {
			sleep(time.Until(s.incident.to), s.incident.over)
		}
		e.Exit(nil)
		rest(w, r)
	}
}

// between returns a function that returns random durations from lo to hi milliseconds.
func between(lo, hi time.Duration) func() time.Duration {
	return func() time.Duration { return lo*time.Millisecond + rand.N((hi-lo)*time.Millisecond+1) }
}
