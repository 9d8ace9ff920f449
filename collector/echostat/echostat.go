// Package echostat counts the requests of echo services (version 4) with package collector. It has one function,
// [Middleware]. For version 5 use package echov5stat.
//
//	e := echo.New()
//	e.Use(middleware.Recover(), echostat.Middleware(c))
//
// Options, statuses, exceptions and limits work as in package httpstat. The resource of a request is its method and the
// Path of echo, such as "GET /users/:id". Requests that match no path are [httpstat.Unmatched]. So are requests whose
// path has routes for other methods only; echo responds to them itself with 405, or 204 for OPTIONS. Limits are checked
// before the inner handlers run; the response to a refused request is 429.
//
// Calls that handlers make with ec.Request().Context() are nested below the request.
//
// # Errors
//
// Echo calls its HTTPErrorHandler after all middleware has returned, to convert an error into a response. This
// middleware calls it immediately, and counts the status of the response, as echo's Logger and RequestLogger do. Outer
// middleware therefore gets the error after the response was written. Install middleware that converts errors inside of
// this one. A custom HTTPErrorHandler must check Response().Committed, as echo's handler does, because it is called
// again when the error reaches echo.
//
// # Panics
//
// The middleware works inside or outside of echo's Recover. A panic is an exception. The request has the status that
// was written before the panic, or else 500, which Recover sends. It has no code after http.ErrAbortHandler, which
// Recover lets through. If other middleware recovers panics and sends another status, pass this status to
// httpstat.Recovered. In a service without Recover, net/http closes the connection; use httpstat.Recovered(0).
//
// # Caveats
//
// Install the middleware with Use on an Echo, a group or a route, not with Pre: echo runs Pre before it knows the
// route. RouteNotFound routes, and routes that echo creates for groups with middleware, are routes like any other, such
// as "GET /admin/*". Methods that HTTP does not define are OTHER in names. Hosts are not part of names.
//
// Responses of outer middleware, such as CORS responses, are not counted. A request is counted twice if its route has
// the middleware twice.
package echostat

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Middleware counts requests under their route: the method and echo's path, such as "GET /users/:id", or
// [httpstat.Unmatched]. If a limit refuses a request, the middleware sends the response, and no inner handler runs.
// Middleware takes the options of [httpstat.Handler]. A panic that propagates is counted with 500, the status that
// echo's Recover sends, unless the option [httpstat.Recovered] sets another one. A nil Collector counts nothing.
//
// If an inner handler returns an error, the middleware passes it to echo's HTTPErrorHandler immediately, because the
// handler chooses the status. Then it returns the error, as echo's RequestLogger does.
//
// Middleware is safe for concurrent use. It costs as much as httpstat.Handler, plus making a name, and a little more.
func Middleware(c *collector.Collector, opts ...httpstat.Option) echo.MiddlewareFunc {
	m := httpstat.New(c, append([]httpstat.Option{httpstat.Recovered(http.StatusInternalServerError)}, opts...)...)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(ec echo.Context) (err error) {
			// Echo's Response stays, with the hooks of outer middleware. The writer below it is replaced.
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

// route returns the name of the route that a request matches.
func route(ec echo.Context) string {
	// If the path matches but the method does not, the router sets the allowed methods.
	if ec.Path() == "" || ec.Get(echo.ContextKeyHeaderAllow) != nil {
		return httpstat.Unmatched
	}
	return httpstat.Method(ec.Request().Method) + " " + ec.Path()
}
