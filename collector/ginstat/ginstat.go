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

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Middleware counts requests for their route: the method and gin's pattern, such as "GET /users/:id", or
// [httpstat.Unmatched]. One that a limit refuses is answered, and no handler behind this one runs. The options are those of
// [httpstat.Handler]; a panic that goes on is counted with 500, which gin's Recovery makes of it, unless the option
// [httpstat.Recovered] says otherwise. A nil Collector counts nothing.
//
// It is safe for concurrent use, and costs what httpstat.Handler does, a name and a little more.
func Middleware(c *collector.Collector, opts ...httpstat.Option) gin.HandlerFunc {
	m := httpstat.New(c, append([]httpstat.Option{httpstat.Recovered(http.StatusInternalServerError)}, opts...)...)
	return func(g *gin.Context) {
		name := httpstat.Unmatched
		if route := g.FullPath(); route != "" {
			name = g.Request.Method + " " + route // a method that has routes
		}
		outside := g.Writer
		if !m.Serve(outside, g.Request, name, http.HandlerFunc(func(counted http.ResponseWriter, r *http.Request) {
			w := &response{ResponseWriter: outside, counted: counted}
			g.Writer, g.Request = w, r // the request stays as the handlers behind leave it, as in gin
			returned := false
			defer func() {
				if g.Writer == w {
					g.Writer = outside
				}
				if returned || w.Written() {
					w.tell()
				}
			}()
			g.Next()
			returned = true
		})) {
			g.Abort()
		}
	}
}

// response is gin's writer while the handlers behind run. Gin keeps the status of a response until its body begins, or all
// handlers have returned, and does not know of connections that were taken over.
type response struct {
	gin.ResponseWriter
	counted http.ResponseWriter // by which the status is told
}

// tell tells the status that the client gets, which is gin's own already. Informational ones are followed by the one that net/http implies.
func (w *response) tell() {
	if status := w.Status(); status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.counted.WriteHeader(status)
	}
}

// Hijack implements http.Hijacker. A response that has begun has its status; any other is a switch of the protocol.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.Written() {
		w.tell()
	}
	return http.NewResponseController(w.counted).Hijack()
}

// Unwrap lets http.ResponseController reach gin's writer.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
