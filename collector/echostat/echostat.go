// Package echostat counts the requests of echo services (version 4) with package collector. It has one function,
// [Middleware]. For version 5 use package echov5stat.
//
//	e := echo.New()
//	e.Use(middleware.Recover(), echostat.Middleware(c))
//
// Options, statuses, exceptions and limits work as in package httpstat. The resource of a request is its method and the
// Path of echo, such as "GET /users/:id". A request that matches no path is [httpstat.Unmatched]. A request is also
// Unmatched if its path has routes for other methods only. Echo itself responds to such a request, with 405, or with
// 204 for OPTIONS. The middleware checks limits before the inner handlers run. The response to a refused request is
// 429.
//
// Calls that handlers make with ec.Request().Context() are nested below the request.
//
// # Errors
//
// Echo calls its HTTPErrorHandler after all middleware has returned, to convert an error into a response. The
// middleware of this package calls the HTTPErrorHandler immediately after the inner handler has returned, as echo's
// Logger and RequestLogger do, and counts the status of the response. Outer middleware therefore gets the error after
// the response was written. Install middleware that converts errors inside of this middleware. A custom
// HTTPErrorHandler must check Response().Committed, as echo's handler does, because it is called again when the error
// reaches echo.
//
// # Panics
//
// The middleware works both inside and outside of echo's Recover. A panic is an exception. If the handler has written a
// status before the panic, the request has this status. Otherwise the request has status 500, which Recover sends.
// After the panic http.ErrAbortHandler, which Recover does not recover, the request has no code. If other middleware
// recovers panics and sends another status, pass that status to httpstat.Recovered. In a service without Recover,
// net/http closes the connection; use httpstat.Recovered(0).
//
// # Caveats
//
// Install the middleware with Use on an Echo, a group or a route. Do not install it with Pre: echo runs the middleware
// of Pre before it knows the route. Requests of RouteNotFound routes have the names of these routes, such as "GET
// /admin/*". The same is true for the routes that echo creates for groups with middleware. If HTTP does not define a
// method, the name has OTHER instead of the method. The host is not part of the name.
//
// Responses of outer middleware, such as CORS responses, are not counted. A request is counted twice if its route has
// this middleware twice.
package echostat

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Middleware counts requests under their route: the method and echo's path, such as "GET /users/:id", or
// [httpstat.Unmatched]. If a limit refuses a request, the middleware sends the response, and no inner handler runs.
// Middleware takes the options of [httpstat.Handler]. A panic that propagates through the middleware is counted with
// 500, the status that echo's Recover sends, unless the option [httpstat.Recovered] sets another status. A nil
// Collector counts nothing.
//
// If an inner handler returns an error, the middleware passes it to echo's HTTPErrorHandler immediately, because the
// HTTPErrorHandler chooses the status. Then the middleware returns the error, as echo's RequestLogger does.
//
// Middleware is safe for concurrent use. It costs a little more than httpstat.Handler, mainly because it builds the
// name of each request.
func Middleware(c *collector.Collector, opts ...httpstat.Option) echo.MiddlewareFunc {
	m := httpstat.New(c, append([]httpstat.Option{httpstat.Recovered(http.StatusInternalServerError)}, opts...)...)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(ec echo.Context) (err error) {
			// Keep echo's Response, because outer middleware may have set hooks on it. Replace only the ResponseWriter
			// in the Response.
			response, request := ec.Response(), ec.Request()
			inner := response.Writer
			m.ServeInner(response, inner, request, route(ec), http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					response.Writer = w
					ec.SetRequest(r)
					defer func() {
						if response.Writer == w {
							response.Writer = inner
						}
						if ec.Request() == r {
							ec.SetRequest(request)
						}
					}()
					if err = next(ec); err != nil {
						ec.Error(err)
					}
				}))
			return err
		}
	}
}

// route returns the name of the route that a request matches, or [httpstat.Unmatched] if it matches no route.
func route(ec echo.Context) string {
	// If the path of the request has routes, but only for other methods, echo's router stores the allowed methods under
	// this key.
	if ec.Path() == "" || ec.Get(echo.ContextKeyHeaderAllow) != nil {
		return httpstat.Unmatched
	}
	return httpstat.Method(ec.Request().Method) + " " + ec.Path()
}
