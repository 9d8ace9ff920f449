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
