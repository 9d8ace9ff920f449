package ginstat_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/windowstat/windowstat/collector"
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

// Gin keeps a status until the body begins, or nothing follows.
func TestWaysToAnswer(t *testing.T) {
	for _, x := range []struct {
		name   string
		handle gin.HandlerFunc
		status int // that the client gets, and is counted
	}{
		{"nothing", func(*gin.Context) {}, 200},
		{"a status alone", func(g *gin.Context) { g.Status(http.StatusAccepted) }, 202},
		{"another status", func(g *gin.Context) { g.Status(http.StatusAccepted); g.Status(http.StatusTeapot) }, 418},
		{"a status too late", func(g *gin.Context) { g.String(http.StatusOK, "x"); g.Status(http.StatusTeapot) }, 200},
		{"an abort", func(g *gin.Context) { _ = g.AbortWithError(http.StatusConflict, io.EOF) }, 409},
		{"a stream", func(g *gin.Context) {
			for range 3 {
				fmt.Fprint(g.Writer, "x")
				g.Writer.Flush()
			}
		}, 200},
		{"an early hint", func(g *gin.Context) { g.Status(http.StatusEarlyHints); g.Writer.WriteHeaderNow() }, 200},
		{"a deadline", func(g *gin.Context) {
			if err := http.NewResponseController(g.Writer).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				g.Status(http.StatusNotImplemented)
			}
		}, 200},
		{"another protocol", func(g *gin.Context) {
			conn, buf, err := g.Writer.Hijack()
			if err != nil {
				g.Status(http.StatusNotImplemented)
				return
			}
			servicetest.Upgrade(conn, buf)
		}, 101},
		{"another middleware's writer", func(g *gin.Context) {
			g.Writer = struct{ gin.ResponseWriter }{g.Writer}
			g.String(http.StatusCreated, "x")
		}, 201},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := servicetest.NewCollector(t)
			e := gin.New()
			e.Use(ginstat.Middleware(c))
			e.GET("/", x.handle)
			if got := servicetest.Serve(t, e)("GET", "/"); got != x.status {
				t.Errorf("the client got %d, want %d", got, x.status)
			}
			servicetest.Want(t, c, map[string]string{"GET /": fmt.Sprintf("%d: 1", x.status)})
		})
	}
}

// A panic is counted once, with the status that the client gets, whether the recoverer is inside or outside.
func TestPanics(t *testing.T) {
	for _, x := range []struct {
		name             string
		handle           gin.HandlerFunc
		inside, outside  string
		status, unheeded int // that the client gets with a recoverer, and without
	}{
		{"panic", func(*gin.Context) { panic("boom") }, "500: 1, exceptions: 1", "500: 1, exceptions: 1", 500, 0},
		{"after a status", func(g *gin.Context) { g.Status(http.StatusAccepted); panic("boom") }, "500: 1, exceptions: 1", "500: 1, exceptions: 1", 500, 0},
		{"after a body", func(g *gin.Context) { g.String(http.StatusAccepted, "x"); g.Writer.Flush(); panic("boom") }, "202: 1, exceptions: 1", "202: 1", 202, 202},
		{"abort", func(*gin.Context) { panic(http.ErrAbortHandler) }, "-: 1, exceptions: 1", "200: 1", 200, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, order := range []string{"inside", "outside", "alone"} {
				c := servicetest.NewCollector(t)
				opts, counted, status := []httpstat.Option{}, x.inside, x.status
				e := gin.New()
				use := []gin.HandlerFunc{gin.Recovery(), nil}
				switch order {
				case "outside":
					slices.Reverse(use)
					counted = x.outside
				case "alone":
					use = []gin.HandlerFunc{nil}
					opts, status = append(opts, httpstat.Recovered(0)), x.unheeded
					counted = strings.Replace(counted, "500: 1", "-: 1", 1)
				}
				use[slices.IndexFunc(use, func(h gin.HandlerFunc) bool { return h == nil })] = ginstat.Middleware(c, opts...)
				e.Use(use...)
				e.GET("/", x.handle)
				if got := servicetest.Serve(t, e)("GET", "/"); got != status {
					t.Errorf("%s: the client got %d, want %d", order, got, status)
				}
				servicetest.Want(t, c, map[string]string{"GET /": counted})
			}
		})
	}
}

// A limit on a route refuses before anything behind runs.
func TestLimits(t *testing.T) {
	c := servicetest.NewCollector(t)
	if err := c.SetLimits([]collector.Limit{{Resource: "GET /users/:id", Count: 0, Origin: "bot"}}); err != nil {
		t.Fatal(err)
	}
	e := gin.New()
	e.Use(ginstat.Middleware(c, httpstat.Origin(func(r *http.Request) string { return r.URL.Query().Get("client") }),
		httpstat.Skip(func(r *http.Request) bool { return r.URL.Path == "/healthz" }),
		httpstat.Exception(func(status int) bool { return status == http.StatusTeapot })))
	ran := 0
	e.Use(func(*gin.Context) { ran++ })
	e.GET("/users/:id", func(g *gin.Context) {
		_, below, _ := c.Enter(g.Request.Context(), "below")
		below.Exit(nil)
		g.Status(http.StatusTeapot)
	})
	e.GET("/healthz", func(*gin.Context) {})
	send := servicetest.Serve(t, e)
	for target, status := range map[string]int{"/users/7?client=bot": 429, "/users/7": 418, "/healthz": 200} {
		if got := send("GET", target); got != status {
			t.Errorf("%s: %d", target, got)
		}
	}
	if ran != 2 {
		t.Errorf("%d requests reached the handlers", ran)
	}
	servicetest.Want(t, c, map[string]string{"GET /users/:id": "418: 1, blocked: 1, exceptions: 1", "below": "-: 1"})
	if node := c.Tree().Children()[0]; node.Name() != "http" || len(node.Children()) != 1 || len(node.Children()[0].Children()) != 1 {
		t.Error("the tree is not http > GET /users/:id > below")
	}
}

func TestNilCollectorIsNotThere(t *testing.T) {
	e := gin.New()
	e.Use(ginstat.Middleware(nil))
	e.GET("/", func(g *gin.Context) { g.String(http.StatusTeapot, "x") })
	if got := servicetest.Serve(t, e)("GET", "/"); got != 418 {
		t.Error(got)
	}
}

func BenchmarkMiddleware(b *testing.B) {
	for name, use := range map[string][]gin.HandlerFunc{"bare": nil, "ginstat": {ginstat.Middleware(servicetest.NewCollector(b))}} {
		e := gin.New()
		e.Use(use...)
		e.GET("/users/:id", func(*gin.Context) {})
		r := httptest.NewRequest("GET", "/users/7", nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			w := httptest.NewRecorder()
			for b.Loop() {
				e.ServeHTTP(w, r)
			}
		})
	}
}
