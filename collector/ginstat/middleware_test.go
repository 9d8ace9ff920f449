package ginstat_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/windowstat/windowstat/collector/ginstat"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/collector/internal/servicetest"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	gin.DefaultErrorWriter = io.Discard
	m.Run()
}

func TestRoutes(t *testing.T) {
	c := servicetest.NewCollector(t)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.Use(ginstat.Middleware(c))
	ok := func(g *gin.Context) { g.String(http.StatusOK, "ok") }
	e.GET("/users/:id", ok)
	e.Handle("PURGE", "/users/:id", ok)
	e.Group("/api").Group("/v1").GET("/files/*path", ok)
	e.GET("/away", func(g *gin.Context) { g.Redirect(http.StatusFound, "/users/7") })
	send := servicetest.Serve(t, e)
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
		{"GET", "/users/7/", 301}, // gin asks no middleware
	} {
		if got := send(x.method, x.path); got != x.status {
			t.Errorf("%s %s: %d, want %d", x.method, x.path, got, x.status)
		}
	}
	// While it serves, as some do, though not while it routes.
	e.GET("/late/:id", ok)
	send("GET", "/late/7")
	servicetest.Want(t, c, map[string]string{
		"GET /users/:id": "200: 2", "PURGE /users/:id": "200: 1", "GET /api/v1/files/*path": "200: 1", "GET /away": "302: 1",
		"GET /late/:id": "200: 1", httpstat.Unmatched: "404: 1, 405: 3",
	})
	if total := c.Inbound().Snapshot(nil).Total; total.Complete != 10 {
		t.Errorf("%d inbound", total.Complete)
	}
}

var framework = servicetest.Framework[gin.HandlerFunc, gin.HandlerFunc]{
	Middleware: ginstat.Middleware,
	Recoverer:  gin.Recovery(),
	Before:     func(f func()) gin.HandlerFunc { return func(*gin.Context) { f() } },
	Handler:    gin.WrapF,
	Service: func(use []gin.HandlerFunc, path string, handle gin.HandlerFunc) http.Handler {
		e := gin.New()
		e.Use(use...)
		e.GET(path, handle)
		return e
	},
	Param: ":id",
}

// Gin keeps a status until the body begins, or nothing follows.
func TestWaysToAnswer(t *testing.T) {
	framework.TestAnswers(t, []servicetest.Answer[gin.HandlerFunc]{
		{Name: "another status", Handle: func(g *gin.Context) { g.Status(http.StatusAccepted); g.Status(http.StatusTeapot) }, Status: 418},
		{Name: "a status too late", Handle: func(g *gin.Context) { g.String(http.StatusOK, "x"); g.Status(http.StatusTeapot) }, Status: 200},
		{Name: "an abort", Handle: func(g *gin.Context) { _ = g.AbortWithError(http.StatusConflict, io.EOF) }, Status: 409},
		{Name: "an early hint", Handle: func(g *gin.Context) { g.Status(http.StatusEarlyHints); g.Writer.WriteHeaderNow() }, Status: 200},
		{Name: "another middleware's writer", Status: 201, Handle: func(g *gin.Context) {
			g.Writer = struct{ gin.ResponseWriter }{g.Writer}
			g.String(http.StatusCreated, "x")
		}},
		{
			Name: "panic after a status", Handle: func(g *gin.Context) { g.Status(http.StatusAccepted); panic("boom") }, Status: 500,
			Panic: &servicetest.Panic{Inside: "500: 1, exceptions: 1", Outside: "500: 1, exceptions: 1"},
		},
		{
			Name: "abort", Handle: func(*gin.Context) { panic(http.ErrAbortHandler) }, Status: 200,
			Panic: &servicetest.Panic{Inside: "-: 1, exceptions: 1", Outside: "200: 1"},
		},
	}...)
}

func TestLimits(t *testing.T)       { framework.TestLimits(t) }
func TestNilCollector(t *testing.T) { framework.TestNilCollector(t) }
