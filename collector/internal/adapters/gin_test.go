package adapters_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/windowstat/windowstat/collector/ginstat"
	"github.com/windowstat/windowstat/collector/httpstat"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	gin.DefaultErrorWriter = io.Discard
	m.Run()
}

func TestGinRoutes(t *testing.T) {
	c := newCollector(t)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.Use(ginstat.Middleware(c))
	ok := func(g *gin.Context) { g.String(http.StatusOK, "ok") }
	e.GET("/users/:id", ok)
	e.Handle("PURGE", "/users/:id", ok)
	e.Group("/api").Group("/v1").GET("/files/*path", ok)
	e.GET("/away", func(g *gin.Context) { g.Redirect(http.StatusFound, "/users/7") })
	send := serve(t, e)
	for _, x := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/users/7", 200},
		{"GET", "/users/8", 200},
		{"PURGE", "/users/7", 200},
		{"HEAD", "/users/7", 405},
		{"OPTIONS", "/users/7", 405},
		{"MADEUP", "/users/7", 405},
		{"GET", "/api/v1/files/a/b", 200},
		{"GET", "/nobody", 404},
		{"GET", "/away", 302},
		{"GET", "/users/7/", 301}, // gin runs no middleware for a redirect
	} {
		if got := send(x.method, x.path); got != x.status {
			t.Errorf("%s %s: %d, want %d", x.method, x.path, got, x.status)
		}
	}
	// Add a route while the service runs, at a time when gin handles no request.
	e.GET("/late/:id", ok)
	send("GET", "/late/7")
	wantCounted(t, c, map[string]string{
		"GET /users/:id": "200: 2", "PURGE /users/:id": "200: 1", "GET /api/v1/files/*path": "200: 1",
		"GET /away":     "302: 1",
		"GET /late/:id": "200: 1", httpstat.Unmatched: "404: 1, 405: 3",
	})
	if total := c.Inbound().Snapshot(nil).Total; total.Complete != 10 {
		t.Errorf("%d inbound", total.Complete)
	}
}

var ginFramework = framework[gin.HandlerFunc, gin.HandlerFunc]{
	middleware: ginstat.Middleware,
	recoverer:  gin.Recovery(),
	before:     func(f func()) gin.HandlerFunc { return func(*gin.Context) { f() } },
	handler:    gin.WrapF,
	service: func(use []gin.HandlerFunc, path string, handle gin.HandlerFunc) http.Handler {
		e := gin.New()
		e.Use(use...)
		e.GET(path, handle)
		return e
	},
	param: ":id",
	// Gin does not send a status immediately, but when the body begins or when all handlers have returned.
	own: []answer[gin.HandlerFunc]{
		{
			name:   "another status",
			handle: func(g *gin.Context) { g.Status(http.StatusAccepted); g.Status(http.StatusTeapot) },
			status: 418,
		},
		{
			name:   "a status too late",
			handle: func(g *gin.Context) { g.String(http.StatusOK, "x"); g.Status(http.StatusTeapot) },
			status: 200,
		},
		{
			name:   "an abort",
			handle: func(g *gin.Context) { _ = g.AbortWithError(http.StatusConflict, io.EOF) },
			status: 409,
		},
		{
			name:   "an early hint",
			handle: func(g *gin.Context) { g.Status(http.StatusEarlyHints); g.Writer.WriteHeaderNow() },
			status: 200,
		},
		{name: "another middleware's writer", status: 201, handle: func(g *gin.Context) {
			g.Writer = struct{ gin.ResponseWriter }{g.Writer}
			g.String(http.StatusCreated, "x")
		}},
		{
			name:   "panic after a status",
			handle: func(g *gin.Context) { g.Status(http.StatusAccepted); panic("boom") },
			status: 500,
			panics: &panics{inside: "500: 1, exceptions: 1", outside: "500: 1, exceptions: 1"},
		},
		{
			name: "abort", handle: func(*gin.Context) { panic(http.ErrAbortHandler) }, status: 200,
			panics: &panics{inside: "-: 1, exceptions: 1", outside: "200: 1"},
		},
	},
}
