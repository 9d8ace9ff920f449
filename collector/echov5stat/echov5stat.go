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
