// Package ginstat counts the requests of gin services: middleware on package collector.
//
//	engine := gin.Default()
//	engine.Use(ginstat.Middleware(c))
//
// The options are those of package httpstat, whose statuses, exceptions and limits hold here, too. The resource of a request is
// its method and gin's FullPath, such as "GET /users/:id"; requests without one, so those that NoRoute and NoMethod answer, are
// [httpstat.Unmatched], whatever their method. Limits are asked before the handlers behind run: a request that they
// refuse is answered with 429, and aborted.
//
// What handlers call with the request's context is nested below it: g.Request.Context(), and the gin.Context itself where
// the engine's ContextWithFallback is on.
//
// # Panics
//
// The middleware may stand inside or outside of gin's Recovery. A panic is an exception, with the status that was written, or
// 500, which Recovery answers with. A service without Recovery, where net/http closes the connection, says
// httpstat.Recovered(0), and one whose recoverer has another status that one. Recovery takes http.ErrAbortHandler for a
// connection that is broken, and gin answers with the status that was set; inside of it this is an exception without a code.
//
// # Caveats
//
// Gin answers redirects for a slash at the end (RedirectTrailingSlash) and of RedirectFixedPath before any middleware:
// they are not counted. What middleware outside of this one answers itself, as for CORS, is not, either.
//
// A request that is routed again by HandleContext is counted for both routes, one below the other. So is one whose route has the
// middleware twice.
//
// Gin allows no routes to be added while it routes; one that was added is counted from its first request on.
package ginstat
