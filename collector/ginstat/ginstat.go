// Package ginstat counts the requests of gin services with package collector. It has one function, [Middleware].
//
//	engine := gin.Default()
//	engine.Use(ginstat.Middleware(c))
//
// Options, statuses, exceptions and limits work as in package httpstat. The resource of a request is its method and
// gin's FullPath, such as "GET /users/:id". Requests without a FullPath, such as the requests of NoRoute and NoMethod,
// are [httpstat.Unmatched], for any method. Limits are checked before the inner handlers run; the response to a
// refused request is 429, and the request is aborted.
//
// Calls that handlers make with the context of the request are nested below it. This context is g.Request.Context(), or
// the gin.Context itself if the engine has ContextWithFallback.
//
// # Panics
//
// The middleware works inside or outside of gin's Recovery. A panic is an exception. The request has the status that
// was written before the panic, or else 500, which Recovery sends. If other middleware recovers panics and sends
// another status, pass this status to httpstat.Recovered. In a service without Recovery, net/http closes the
// connection; use httpstat.Recovered(0). Recovery treats http.ErrAbortHandler as a broken connection, and gin responds
// with the status that was set. If the middleware is inside of Recovery, such a request is an exception without a code.
//
// # Caveats
//
// Gin sends the redirects of RedirectTrailingSlash and RedirectFixedPath before any middleware runs; these are not
// counted. Responses of outer middleware, such as CORS responses, are not counted either.
//
// A request that HandleContext routes again is counted for both routes, one below the other. So is a request whose
// route has the middleware twice.
//
// Gin does not allow adding routes while it routes. A route that is added later is counted from its first request on.
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
// Middleware takes the options of [httpstat.Handler]. A panic that propagates is counted with 500, the status that
// gin's Recovery sends, unless the option [httpstat.Recovered] sets another one. A nil Collector counts nothing.
//
// Middleware is safe for concurrent use. It costs as much as httpstat.Handler, plus making a name, and a little more.
func Middleware(c *collector.Collector, opts ...httpstat.Option) gin.HandlerFunc {
	m := httpstat.New(c, append([]httpstat.Option{httpstat.Recovered(http.StatusInternalServerError)}, opts...)...)
	return func(g *gin.Context) {
		name := httpstat.Unmatched
		if route := g.FullPath(); route != "" {
			name = g.Request.Method + " " + route // a route matched, so the method is not an invented one
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
				if g.Request == r { // like gin, g keeps a request that inner handlers set
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

// response is gin's writer while the inner handlers run. Gin keeps the status of a response until the body begins or
// all handlers have returned, and does not detect hijacked connections. The methods that begin the response report its
// status first. response has all methods that gin's writer has.
type response struct {
	gin.ResponseWriter
	counted  http.ResponseWriter // records the status
	reported bool
}

// report passes the status of the response to counted, once. The status is gin's own, so the client has it anyway.
// Informational statuses are ignored, because net/http sends a final one after them.
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

// Hijack implements http.Hijacker. If the response has begun, it has its status; otherwise the call is a switch of
// protocols (101).
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
