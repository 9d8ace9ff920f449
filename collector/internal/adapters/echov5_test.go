package adapters_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/windowstat/windowstat/collector/echov5stat"
	"github.com/windowstat/windowstat/collector/httpstat"
)

func newEchoV5() *echo.Echo {
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	return e
}

func responseV5(ec *echo.Context) *echo.Response {
	r, err := echo.UnwrapResponse(ec.Response())
	if err != nil {
		panic(err)
	}
	return r
}

func TestEchoV5Routes(t *testing.T) {
	c := newCollector(t)
	e := newEchoV5()
	e.Pre(middleware.RemoveTrailingSlash())
	e.Use(echov5stat.Middleware(c))
	ok := func(ec *echo.Context) error { return ec.String(http.StatusOK, "ok") }
	e.GET("/users/:id", ok)
	e.Any("/any", ok)
	e.Group("/api").Group("/v1").GET("/files/*", ok)
	e.GET("/away", func(ec *echo.Context) error { return ec.Redirect(http.StatusFound, "/users/7") })
	admin := e.Group("/admin", func(next echo.HandlerFunc) echo.HandlerFunc { return next })
	admin.GET("/x", ok)
	send := serve(t, e)
	for _, x := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/users/7", 200},
		{"GET", "/users/8/", 200},
		{"PUT", "/any", 200},
		{"HEAD", "/users/7", 405},
		{"OPTIONS", "/users/7", 204},
		{"MADEUP", "/users/7", 405},
		{"MADEUP", "/any", 200},
		{"GET", "/api/v1/files/a/b", 200},
		{"GET", "/nobody", 404},
		{"GET", "/away", 302},
		{"MADEUP", "/admin/y", 404},
		{"GET", "/admin/y", 404},
	} {
		if got := send(x.method, x.path); got != x.status {
			t.Errorf("%s %s: %d, want %d", x.method, x.path, got, x.status)
		}
	}
	e.GET("/late/:id", ok) // add a route after the first requests, at a time when echo handles no request
	send("GET", "/late/7")
	wantCounted(t, c, map[string]string{
		"GET /users/:id": "200: 2", "PUT /any": "200: 1", "GET /api/v1/files/*": "200: 1", "GET /away": "302: 1",
		"GET /late/:id": "200: 1",
		"OTHER /any":    "200: 1", httpstat.Unmatched: "204: 1, 404: 3, 405: 2",
	})
}

// With AutoHandleHEAD, a HEAD request has the name of the GET route that handles it. With a concurrent router, a route
// can be added and removed while the service runs. Requests before the addition and after the removal match no route.
func TestEchoV5CustomRouter(t *testing.T) {
	c := newCollector(t)
	e := echo.NewWithConfig(
		echo.Config{Router: echo.NewConcurrentRouter(echo.NewRouter(echo.RouterConfig{AutoHandleHEAD: true}))},
	)
	e.Use(echov5stat.Middleware(c))
	e.GET("/users/:id", func(ec *echo.Context) error { return ec.String(http.StatusOK, "ok") })
	send := serve(t, e)
	send("HEAD", "/users/7")
	send("GET", "/late/7")
	e.GET("/late/:id", func(ec *echo.Context) error { return ec.String(http.StatusOK, "ok") })
	send("GET", "/late/7")
	if err := e.Router().Remove("GET", "/late/:id"); err != nil {
		t.Error(err)
	}
	send("GET", "/late/7")
	wantCounted(
		t,
		c,
		map[string]string{"GET /users/:id": "200: 1", "GET /late/:id": "200: 1", httpstat.Unmatched: "404: 2"},
	)
}

// Echo converts errors into responses after all middleware has returned. Calls are nevertheless counted with the status
// that the client gets.
func TestEchoV5Errors(t *testing.T) {
	for _, x := range []struct {
		name   string
		handle echo.HandlerFunc
		status int // status that the client gets and that is counted
	}{
		{"nothing", func(*echo.Context) error { return nil }, 200},
		{"a status alone", func(ec *echo.Context) error { return ec.NoContent(http.StatusAccepted) }, 202},
		{"an error", func(*echo.Context) error { return errors.New("no") }, 500},
		{"echo's error", func(*echo.Context) error { return echo.NewHTTPError(http.StatusTeapot, "no") }, 418},
		{"an error that the error handler knows", func(*echo.Context) error { return io.ErrUnexpectedEOF }, 409},
		{"an error after a body", func(ec *echo.Context) error {
			return errors.Join(ec.String(http.StatusCreated,
				"x"), io.EOF)
		}, 201},
		{"a status too late", func(ec *echo.Context) error {
			_ = ec.String(http.StatusOK,
				"x")
			return ec.NoContent(418)
		}, 200},
		{"a stream", func(ec *echo.Context) error {
			for range 3 {
				fmt.Fprint(ec.Response(), "x")
				_ = http.NewResponseController(ec.Response()).Flush()
			}
			return nil
		}, 200},
		{"another middleware's writer", func(ec *echo.Context) error {
			return middleware.Gzip()(func(ec *echo.Context) error { return ec.String(http.StatusCreated, "x") })(ec)
		}, 201},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCollector(t)
			e := newEchoV5()
			handled := 0
			e.HTTPErrorHandler = func(ec *echo.Context, err error) {
				if responseV5(ec).Committed {
					return
				}
				handled++
				if errors.Is(err, io.ErrUnexpectedEOF) {
					_ = ec.NoContent(http.StatusConflict)
					return
				}
				echo.DefaultHTTPErrorHandler(false)(ec, err)
			}
			var outside error
			var status int
			over := make(chan struct{}) // closed when the handler and the middleware have returned
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(ec *echo.Context) error {
					defer close(over)
					outside = next(ec)
					status = responseV5(ec).Status
					return outside
				}
			}, echov5stat.Middleware(c))
			e.GET("/", x.handle)
			if got := serve(t, e)("GET", "/"); got != x.status {
				t.Errorf("the client got %d, want %d", got, x.status)
			}
			<-over
			counts := fmt.Sprintf("%d: 1", x.status)
			if x.status == 500 {
				counts += ", exceptions: 1"
			}
			wantCounted(t, c, map[string]string{"GET /": counts})
			if failed := strings.Contains(x.name, "error"); (outside != nil) != failed || handled > 1 {
				t.Errorf("the outer middleware got %v, and the error handler responded %d times", outside, handled)
			}
			if status != x.status {
				t.Errorf("the outer middleware read the status %d", status)
			}
		})
	}
}

var echoV5Framework = framework[echo.MiddlewareFunc, echo.HandlerFunc]{
	middleware: echov5stat.Middleware,
	recoverer:  middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}),
	before: func(f func()) echo.MiddlewareFunc {
		return func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(ec *echo.Context) error { f(); return next(ec) }
		}
	},
	handler: func(h http.HandlerFunc) echo.HandlerFunc { return echo.WrapHandler(h) },
	service: func(use []echo.MiddlewareFunc, path string, handle echo.HandlerFunc) http.Handler {
		e := newEchoV5()
		e.Use(use...)
		e.GET(path, handle)
		return e
	},
	param: ":id",
}
