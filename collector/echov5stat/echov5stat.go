// Package echov5stat counts the requests of echo services (version 5) with package collector. It has one function,
// [Middleware]. For version 4 use package echostat.
//
//	e := echo.New()
//	e.Use(middleware.Recover(), echov5stat.Middleware(c))
//
// Options, statuses, exceptions and limits work as in package httpstat. The resource of a request is the method and
// path of its route, such as "GET /users/:id". A HEAD request that a GET route handles because of AutoHandleHEAD has
// the name of the GET route. For a route that was added with Any, the name has the method of the request, or OTHER if
// HTTP does not define the method. Requests that match no route are [httpstat.Unmatched]. Echo itself responds to such
// requests, with 404 or 405, or with 204 for OPTIONS. Requests of RouteNotFound routes are Unmatched, too. The
// middleware checks limits before the inner handlers run. The response to a refused request is 429.
//
// Calls that handlers make with ec.Request().Context() are nested below the request.
//
// # Errors
//
// Echo calls its HTTPErrorHandler after all middleware has returned, to convert an error into a response. The
// middleware of this package calls the HTTPErrorHandler immediately after the inner handler has returned, as echo's
// RequestLogger does, and counts the status of the response. Outer middleware therefore gets the error after the
// response was written. Install middleware that converts errors inside of this middleware. A custom HTTPErrorHandler
// must check whether the response is committed, as echo's handler does, because it is called again when the error
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
// of Pre before it knows the route. A custom router must set the route with Context.InitializeRoute. The host is not
// part of the name.
//
// Responses of outer middleware, such as CORS responses, are not counted. A request is counted twice if its route has
// this middleware twice.
package echov5stat

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Middleware counts requests under their route: the method and path with which the route was added, such as "GET
// /users/:id", or [httpstat.Unmatched]. If a limit refuses a request, the middleware sends the response, and no inner
// handler runs. Middleware takes the options of [httpstat.Handler]. A panic that propagates through the middleware is
// counted with 500, the status that echo's Recover sends, unless the option [httpstat.Recovered] sets another status. A
// nil Collector counts nothing.
//
// If an inner handler returns an error, the middleware passes it to echo's HTTPErrorHandler immediately, because the
// HTTPErrorHandler chooses the status. Then the middleware returns the error, as echo's RequestLogger does.
//
// Middleware is safe for concurrent use. It costs a little more than httpstat.Handler, mainly because it builds the
// name of each request.
func Middleware(c *collector.Collector, opts ...httpstat.Option) echo.MiddlewareFunc {
	m := httpstat.New(c, append([]httpstat.Option{httpstat.Recovered(http.StatusInternalServerError)}, opts...)...)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(ec *echo.Context) (err error) {
			// Keep echo's Response, because outer middleware may have set hooks on it. Replace only the ResponseWriter
			// in the Response.
			outside, request := ec.Response(), ec.Request()
			inner, current, replace := outside, ec.Response, ec.SetResponse
			if response, err := echo.UnwrapResponse(outside); err == nil {
				inner = response.ResponseWriter
				current = func() http.ResponseWriter { return response.ResponseWriter }
				replace = func(w http.ResponseWriter) { response.ResponseWriter = w }
			}
			m.ServeInner(outside, inner, request, route(ec), http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					replace(w)
					ec.SetRequest(r)
					defer func() {
						if current() == w {
							replace(inner)
						}
						if ec.Request() == r {
							ec.SetRequest(request)
						}
					}()
					if err = next(ec); err != nil {
						ec.Echo().HTTPErrorHandler(ec, err)
					}
				}))
			return err
		}
	}
}

// route returns the name of the route that a request matches, or [httpstat.Unmatched] if it matches no route.
func route(ec *echo.Context) string {
	switch x := ec.RouteInfo(); x.Method {
	case "", echo.RouteNotFound:
		return httpstat.Unmatched
	case echo.RouteAny:
		return httpstat.Method(ec.Request().Method) + " " + x.Path
	default:
		return x.Method + " " + x.Path
	}
}
