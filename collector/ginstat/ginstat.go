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
		if !m.Serve(g.Writer, g.Request, name, &response{ResponseWriter: g.Writer, g: g}) {
			g.Abort()
		}
	}
}

// response is gin's writer while the handlers behind run. Gin keeps the status of a response until its body begins, or all
// handlers have returned, and does not know of connections that were taken over.
type response struct {
	gin.ResponseWriter
	g        *gin.Context
	returned bool
	hijacked bool
}

// ServeHTTP runs the handlers behind, with a writer of gin's. As in gin, the request stays as they leave it.
func (w *response) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	w.g.Writer, w.g.Request = w, r
	defer func() {
		if w.g.Writer == w {
			w.g.Writer = w.ResponseWriter
		}
	}()
	w.g.Next()
	w.returned = true
}

// Answered is the status that the client gets.
func (w *response) Answered() int {
	switch status := w.Status(); {
	case w.hijacked:
		return http.StatusSwitchingProtocols
	case !w.returned && !w.Written():
		return 0
	case status < http.StatusOK && status != http.StatusSwitchingProtocols:
		return http.StatusOK // informational ones are followed by it
	default:
		return status
	}
}

// Hijack implements http.Hijacker.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	before := w.Written()
	conn, buf, err := w.ResponseWriter.Hijack()
	w.hijacked = w.hijacked || err == nil && !before
	return conn, buf, err
}

// Unwrap lets http.ResponseController reach gin's writer.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
