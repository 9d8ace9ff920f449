// Package chistat counts the requests of chi services: middleware on package collector.
//
//	r := chi.NewRouter()
//	r.Use(middleware.Recoverer, chistat.Middleware(c))
//	r.Mount("/api", api)
//
// The options are those of package httpstat, whose statuses, exceptions and limits hold here, too. The resource of a request is
// its method and chi's pattern as RoutePattern tells it in a handler, of all routers that are mounted on the way, such as
// "GET /api/users/{id}". Requests that match no route are [httpstat.Unmatched], whatever their method. HEAD has the name
// of GET's route if it has none of its own, because middleware.GetHead answers it so. Limits are asked before the handlers
// behind run: a request that they refuse is answered with 429.
//
// What handlers call with r.Context() is nested below the request.
//
// # Where it stands
//
// In Use of the outermost router it counts everything. Chi runs such middleware before it routes, so the route is searched
// twice. Middleware that changes what chi routes by, such as StripSlashes, goes outside: inside of it a request is named by
// the path that it came with. RedirectSlashes, inside, redirects requests that are unmatched.
//
// With With, and in a Group, chi has routed already, and nothing is searched; only the routes there are counted. Use of a
// router that is mounted counts those, and its 404s; there it sees paths as the request came with them. A router that is
// no chi.Mux is wrapped as a whole: chistat.Middleware(c)(router).
//
// A handler that is mounted and is no chi.Routes counts for the pattern that it is mounted at, such as "GET /old/*". So does
// a router behind http.StripPrefix, into which nobody can look; [StripPrefix] is the same, and keeps its routes.
//
// # Panics
//
// The middleware may stand inside or outside of chi's Recoverer. A panic is an exception, with the status that was written, or
// 500, which Recoverer answers with; http.ErrAbortHandler, which it lets through, has no code. A service without Recoverer,
// where net/http closes the connection, says httpstat.Recovered(0), and one whose recoverer has another status that one.
//
// # Caveats
//
// What middleware outside of this one answers itself, as for CORS, is not counted. A request is counted twice, one below the
// other, if it passes the middleware twice, as in a router and one that is mounted in it.
//
// Chi allows no routes to be added while it routes; one that was added is counted from its first request on.
package chistat
