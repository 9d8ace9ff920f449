// Package ginstat counts the requests of gin services with package collector. It has one function, [Middleware].
//
//	engine := gin.Default()
//	engine.Use(ginstat.Middleware(c))
//
// Options, statuses, exceptions and limits work as in package httpstat. The resource of a request is its method and
// gin's FullPath, such as "GET /users/:id". Requests without a FullPath are [httpstat.Unmatched], whatever their
// method. The handlers of NoRoute and NoMethod handle such requests. The middleware checks limits before the inner
// handlers run. If a limit refuses a request, the middleware aborts it, and the response is 429.
//
// Calls that handlers make with the context of the request are nested below the request. This context is
// g.Request.Context(), or the gin.Context itself if the engine has ContextWithFallback.
//
// # Panics
//
// The middleware works both inside and outside of gin's Recovery. A panic is an exception. If the handler has written a
// status before the panic, the request has this status. Otherwise the request has status 500, which Recovery sends. If
// other middleware recovers panics and sends another status, pass that status to httpstat.Recovered. In a service
// without Recovery, net/http closes the connection; use httpstat.Recovered(0).
//
// Recovery takes the panic http.ErrAbortHandler for a broken connection, and gin then responds with the status that the
// handler has set. If the middleware is inside of Recovery, a request with this panic is an exception without a code.
//
// # Caveats
//
// Gin sends the redirects of RedirectTrailingSlash and RedirectFixedPath before any middleware runs. Such redirects are
// not counted. Responses of outer middleware, such as CORS responses, are not counted either.
//
// HandleContext routes a request again. Such a request is counted for both routes, and the call of the second route is
// nested below the call of the first route. A request is also counted twice if its route has this middleware twice.
//
// Gin does not allow adding routes while it routes. A route that is added after the first requests is counted from its
// own first request on.
package ginstat

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Middleware counts requests under their route: the method and gin's pattern, such as "GET /users/:id", or
// [httpstat.Unmatched]. If a limit refuses a request, the middleware sends the response, and no inner handler runs.
// Middleware takes the options of [httpstat.Handler]. A panic that propagates through the middleware is counted with
// 500, the status that gin's Recovery sends, unless the option [httpstat.Recovered] sets another status. A nil
// Collector counts nothing.
//
// Middleware is safe for concurrent use. It costs a little more than httpstat.Handler, mainly because it builds the
// name of each request.
func Middleware(c *collector.Collector, opts ...httpstat.Option) gin.HandlerFunc {
	m := httpstat.New(c, append([]httpstat.Option{httpstat.Recovered(http.StatusInternalServerError)}, opts...)...)
	return func(g *gin.Context) {
		name := httpstat.Unmatched
		if route := g.FullPath(); route != "" {
			// httpstat.Method is not needed, because the service has a route for this method.
			name = g.Request.Method + " " + route
		}
		writer, request := g.Writer, g.Request
		if !m.Serve(writer, request, name, http.HandlerFunc(func(counted http.ResponseWriter, r *http.Request) {
			w := &response{ResponseWriter: writer, counted: counted}
			g.Writer, g.Request = w, r
			returned := false
			defer func() {
				if g.Writer == w {
					g.Writer = writer
				}
				if g.Request == r { // if an inner handler has set another request, keep that request, as gin does
					g.Request = request
				}
				if returned || w.Written() {
					w.report()
				}
			}()
			g.Next()
			returned = true
		})) {
			g.Abort()
		}
	}
}

// response replaces gin's writer while the inner handlers run, and has all methods of gin's writer. Gin delays the
// status of a response until the body begins or all handlers have returned. Gin does not detect hijacked connections.
// Therefore each method that begins the response first calls report.
type response struct {
	gin.ResponseWriter
	counted  http.ResponseWriter // writer of httpstat, which records the status
	reported bool
}

// report passes the status of the response to the writer counted, at most once. This writer then writes the status to
// gin's writer. Gin's writer has the same status already, so the response does not change. report ignores informational
// statuses, because net/http sends a final status after them.
func (w *response) report() {
	status := w.Status()
	if !w.reported && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		w.reported = true
		w.counted.WriteHeader(status)
	}
}

func (w *response) Write(b []byte) (int, error) {
	w.report()
	return w.ResponseWriter.Write(b)
}

func (w *response) WriteString(s string) (int, error) {
	w.report()
	return w.ResponseWriter.WriteString(s)
}

func (w *response) WriteHeaderNow() {
	w.report()
	w.ResponseWriter.WriteHeaderNow()
}

func (w *response) Flush() {
	w.report()
	w.ResponseWriter.Flush()
}

// Hijack implements http.Hijacker. If the response has begun, the recorded status is the status of the response.
// Otherwise the recorded status is 101, because the connection may switch to another protocol.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.Written() {
		w.report()
	}
	conn, buf, err := http.NewResponseController(w.counted).Hijack()
	w.reported = w.reported || err == nil
	return conn, buf, err
}

// Unwrap lets http.ResponseController reach gin's writer.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
