// Package echostat counts the requests of services with version 4 of echo: middleware on package collector. For version 5 there
// is package echov5stat.
//
//	e := echo.New()
//	e.Use(middleware.Recover(), echostat.Middleware(c))
//
// The options are those of package httpstat, whose statuses, exceptions and limits hold here, too. The resource of a request is
// its method and echo's Path, such as "GET /users/:id"; requests that match no path are [httpstat.Unmatched], and so are those
// whose path has a route, but none with their method, which echo answers itself with 405, or 204 for OPTIONS. Limits are asked
// before the handlers behind run: a request that they refuse is answered with 429.
//
// What handlers call with ec.Request().Context() is nested below the request.
//
// # Errors
//
// Echo asks its HTTPErrorHandler what an error means after all middleware has returned. This one asks it at once, and counts
// what it answers, as echo's Logger and RequestLogger do. So middleware outside has the error, but the response is written
// already: what turns errors into others goes inside. A handler of your own must look at Response().Committed, as echo's does,
// because it is asked again with an error that goes on.
//
// # Panics
//
// The middleware may stand inside or outside of echo's Recover. A panic is an exception, with the status that was written, or
// 500, which Recover answers with; http.ErrAbortHandler, which it lets through, has no code. A service without Recover, where
// net/http closes the connection, says httpstat.Recovered(0), and one whose recoverer has another status that one.
//
// # Caveats
//
// It is for Use, of an Echo, a group or a route, not for Pre, which runs before a route is known. Routes of RouteNotFound, and
// those that echo makes for groups with middleware of their own, are routes like others, such as "GET /admin/*"; a method that
// HTTP does not define is OTHER in names. Hosts are not part of names.
//
// What middleware outside of this one answers itself, as for CORS, is not counted. A request is counted twice if its route has the
// middleware twice.
package echostat

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Middleware counts requests for their route: the method and echo's path, such as "GET /users/:id", or
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
		return func(ec echo.Context) (err error) {
			outside := ec.Response()
			m.Serve(outside, ec.Request(), route(ec), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inside := echo.NewResponse(w, ec.Echo())
				inside.Status = outside.Status
				ec.SetResponse(inside)
				defer func() {
					if ec.Response() == inside {
						ec.SetResponse(outside)
					}
				}()
				ec.SetRequest(r)
				if err = next(ec); err != nil {
					ec.Error(err)
				}
			}))
			return err
		}
	}
}

// route is the name of the route that a request matches.
func route(ec echo.Context) string {
	// The router says which methods are allowed where the path matches, and the method does not.
	if ec.Path() == "" || ec.Get(echo.ContextKeyHeaderAllow) != nil {
		return httpstat.Unmatched
	}
	return httpstat.Method(ec.Request().Method) + " " + ec.Path()
}
