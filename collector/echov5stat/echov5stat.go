// Package echov5stat counts the requests of services with version 5 of echo: middleware on package collector. For version 4 there
// is package echostat.
//
//	e := echo.New()
//	e.Use(middleware.Recover(), echov5stat.Middleware(c))
//
// The options are those of package httpstat, whose statuses, exceptions and limits hold here, too. The resource of a request is
// the method and path of its route, such as "GET /users/:id", for HEAD, too, where AutoHandleHEAD has GET's route answer; the
// method is the request's own for routes of Any, OTHER if HTTP does not define it. Requests that match no route are
// [httpstat.Unmatched]: those that echo answers itself with 404, 405, or 204 for OPTIONS, and those of RouteNotFound. Limits
// are asked before the handlers behind run: a request that they refuse is answered with 429.
//
// What handlers call with ec.Request().Context() is nested below the request.
//
// # Errors
//
// Echo asks its HTTPErrorHandler what an error means after all middleware has returned. This one asks it at once, and counts
// what it answers, as echo's RequestLogger does. So middleware outside has the error, but the response is written
// already: what turns errors into others goes inside. A handler of your own must look whether the response is committed, as echo's
// does, because it is asked again with an error that goes on.
//
// # Panics
//
// The middleware may stand inside or outside of echo's Recover. A panic is an exception, with the status that was written, or
// 500, which Recover answers with; http.ErrAbortHandler, which it lets through, has no code. A service without Recover, where
// net/http closes the connection, says httpstat.Recovered(0), and one whose recoverer has another status that one.
//
// # Caveats
//
// It is for Use, of an Echo, a group or a route, not for Pre, which runs before a route is known. A router of your own must tell
// the route by Context.InitializeRoute. Hosts are not part of names.
//
// What middleware outside of this one answers itself, as for CORS, is not counted. A request is counted twice if its route has the
// middleware twice.
package echov5stat

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Middleware counts requests for their route: the method and path that it was registered with, such as "GET /users/:id", or
// [httpstat.Unmatched]. One that a limit refuses is answered, and no handler behind this one runs. The options are those of
// [httpstat.Handler]; a panic that goes on is counted with 500, which echo's Recover makes of it, unless the option
// [httpstat.Recovered] says otherwise. A nil Collector counts nothing.
//
// An error from the handlers behind is given to echo's HTTPErrorHandler at once, because the status is its to choose, and
// returned, as by echo's RequestLogger.
//
// It is safe for concurrent use, and costs what httpstat.Handler does, a name and a little more.
func Middleware(c *collector.Collector, opts ...httpstat.Option) echo.MiddlewareFunc {
	m := httpstat.New(c, append([]httpstat.Option{httpstat.Recovered(http.StatusInternalServerError)}, opts...)...)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(ec *echo.Context) (err error) {
			outside := ec.Response()
			m.Serve(outside, ec.Request(), route(ec), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ec.SetResponse(w)
				defer func() {
					if ec.Response() == w {
						ec.SetResponse(outside)
					}
				}()
				ec.SetRequest(r)
				if err = next(ec); err != nil {
					ec.Echo().HTTPErrorHandler(ec, err)
				}
			}))
			return err
		}
	}
}

// route is the name of the route that a request matches.
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
