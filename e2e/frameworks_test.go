package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
	echov5 "github.com/labstack/echo/v5"
	echov5middleware "github.com/labstack/echo/v5/middleware"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/chistat"
	"github.com/windowstat/windowstat/collector/echostat"
	"github.com/windowstat/windowstat/collector/echov5stat"
	"github.com/windowstat/windowstat/collector/ginstat"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// framework describes a service with one web framework. Its routes are /ok/:id, /fail, /panic, /abort and /limited. A
// recoverer is outside or inside of the middleware.
type framework struct {
	name string
	make func(c *collector.Collector, outside bool) http.Handler
	id   string // the id in a pattern
}

var errFail = errors.New("the service fails")

var frameworks = []framework{
	{"net-http", func(c *collector.Collector, outside bool) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /ok/{id}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
		mux.HandleFunc("POST /fail",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		mux.HandleFunc("POST /panic", func(http.ResponseWriter, *http.Request) { panic(errFail) })
		mux.HandleFunc("POST /abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		mux.HandleFunc("POST /limited",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
		recoverer := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					if reason := recover(); reason == http.ErrAbortHandler {
						panic(reason)
					} else if reason != nil {
						w.WriteHeader(http.StatusInternalServerError)
					}
				}()
				next.ServeHTTP(w, r)
			})
		}
		if outside {
			return recoverer(httpstat.Mux(c, mux, httpstat.Recovered(http.StatusInternalServerError)))
		}
		return httpstat.Handler(c, func(r *http.Request) string { _, p := mux.Handler(r); return p }, recoverer(mux))
	}, "{id}"},
	{"gin", func(c *collector.Collector, outside bool) http.Handler {
		e := gin.New()
		e.Use(ordered(outside, gin.RecoveryWithWriter(io.Discard), ginstat.Middleware(c))...)
		e.POST("/ok/:id", func(g *gin.Context) { g.String(http.StatusOK, "ok") })
		e.POST("/fail", func(g *gin.Context) { _ = g.AbortWithError(http.StatusBadGateway, errFail) })
		e.POST("/panic", func(*gin.Context) { panic(errFail) })
		e.POST("/limited", func(g *gin.Context) { g.Status(http.StatusAccepted) })
		return e
	}, ":id"},
	{"echo", func(c *collector.Collector, outside bool) http.Handler {
		e := echo.New()
		e.Logger.SetOutput(io.Discard)
		e.Use(ordered(outside, echomiddleware.Recover(), echostat.Middleware(c))...)
		e.POST("/ok/:id", func(ec echo.Context) error { return ec.String(http.StatusOK, "ok") })
		e.POST("/fail", func(echo.Context) error {
			return echo.NewHTTPError(http.StatusBadGateway).SetInternal(errFail)
		})
		e.POST("/panic", func(echo.Context) error { panic(errFail) })
		e.POST("/abort", func(echo.Context) error { panic(http.ErrAbortHandler) })
		e.POST("/limited", func(ec echo.Context) error { return ec.NoContent(http.StatusAccepted) })
		return e
	}, ":id"},
	{"echo-v5", func(c *collector.Collector, outside bool) http.Handler {
		e := echov5.New()
		e.Logger = slog.New(slog.DiscardHandler)
		e.Use(ordered(outside, echov5middleware.Recover(), echov5stat.Middleware(c))...)
		e.POST("/ok/:id", func(ec *echov5.Context) error { return ec.String(http.StatusOK, "ok") })
		e.POST("/fail", func(*echov5.Context) error { return echov5.NewHTTPError(http.StatusBadGateway, "no") })
		e.POST("/panic", func(*echov5.Context) error { panic(errFail) })
		e.POST("/abort", func(*echov5.Context) error { panic(http.ErrAbortHandler) })
		e.POST("/limited", func(ec *echov5.Context) error { return ec.NoContent(http.StatusAccepted) })
		return e
	}, ":id"},
	{"chi", func(c *collector.Collector, outside bool) http.Handler {
		r := chi.NewRouter()
		r.Use(chimiddleware.RequestLogger(quiet{})) // otherwise Recoverer writes to standard error
		r.Use(ordered(outside, chimiddleware.Recoverer, chistat.Middleware(c))...)
		r.Mount("/ok", chi.NewRouter().With().Group(func(r chi.Router) {
			r.Post("/{id}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
		}))
		r.Post("/fail", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		r.Post("/panic", func(http.ResponseWriter, *http.Request) { panic(errFail) })
		r.Post("/abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		r.Post("/limited", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
		return r
	}, "{id}"},
}

func ordered[M any](outside bool, recoverer, middleware M) []M {
	if outside {
		return []M{recoverer, middleware}
	}
	return []M{middleware, recoverer}
}

type quiet struct{}

func (quiet) NewLogEntry(*http.Request) chimiddleware.LogEntry { return quiet{} }
func (quiet) Write(int, int, http.Header, time.Duration, any)  {}
func (quiet) Panic(any, []byte)                                {}

// TestFrameworks sends requests with hey, a load generator, to a service of each framework. The service must have
// counted as many responses by status as hey reports. Requests that a limit refused are blocks. Requests whose
// connection was closed have no code.
func TestFrameworks(t *testing.T) {
	t.Parallel()
	gin.SetMode(gin.ReleaseMode)
	hey := buildHey(t)
	for _, f := range frameworks {
		for _, outside := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/recoverer-outside-%t", f.name, outside), func(t *testing.T) {
				c, err := collector.New(collector.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := c.SetLimits([]collector.Limit{{Resource: "POST /limited", Count: 10}}); err != nil {
					t.Fatal(err)
				}
				srv := httptest.NewUnstartedServer(f.make(c, outside))
				srv.Config.ErrorLog = log.New(io.Discard, "", 0)
				srv.Start()
				defer srv.Close()
				names := map[string]string{
					"/ok/7": "POST /ok/" + f.id, "/fail": "POST /fail", "/panic": "POST /panic",
					"/abort": "POST /abort", "/limited": "POST /limited",
					"/nobody": httpstat.Unmatched,
				}
				if f.name == "gin" { // Recovery of gin converts http.ErrAbortHandler to 200
					delete(names, "/abort")
				}
				want := map[string]map[string]int64{} // by resource and response
				for path, name := range names {
					want[name] = ask(t, hey, srv.URL+path)
				}
				if got := answers(t, c); !maps.EqualFunc(got, want, maps.Equal) {
					t.Errorf("the service counted\n%v\nhey\n%v", got, want)
				}
				if want["POST /limited"]["429"] == 0 || want["POST /limited"]["202"] == 0 ||
					want["POST /panic"]["500"] == 0 ||
					f.name != "gin" && want["POST /abort"][closed] == 0 {
					t.Errorf("wrong number of requests in the load: %v", want)
				}
			})
		}
	}
}

// closed represents a missing response.
const closed = "closed"

var (
	statusLine = regexp.MustCompile(`(?m)^\s*\[(\d+)\]\s+(\d+) responses$`)
	errorLine  = regexp.MustCompile(`(?m)^\s*\[(\d+)\]\s+Post "`)
)

// ask sends requests with hey, without retries, and returns the number of responses by status.
func ask(t *testing.T, hey, url string) map[string]int64 {
	t.Helper()
	const requests = 60
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, hey, "-n", strconv.Itoa(requests), "-c", "3", "-m",
		http.MethodPost, "-disable-redirects", url)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("hey: %v\n%s", err, stderr.Bytes())
	}
	got, n := map[string]int64{}, int64(0)
	add := func(answer string, count []byte) {
		x, err := strconv.ParseInt(string(count), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		got[answer] += x
		n += x
	}
	for _, m := range statusLine.FindAllSubmatch(out, -1) {
		add(string(m[1]), m[2])
	}
	for _, m := range errorLine.FindAllSubmatch(out, -1) {
		add(closed, m[1])
	}
	if n != requests {
		t.Fatalf("hey tells of %d requests:\n%s", n, out)
	}
	return got
}

// answers returns the number of responses by resource, after all requests have ended.
func answers(t *testing.T, c *collector.Collector) map[string]map[string]int64 {
	t.Helper()
	all := map[string]map[string]int64{}
	for _, r := range c.Seal().Resources {
		for deadline := time.Now().Add(catchUp); r.InFlight() > 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		got := map[string]int64{}
		var failures int64
		for code, n := range r.View().Codes() {
			answer := code.String()
			if answer == "" {
				answer = closed
			}
			if slices.Contains([]string{closed, "500", "502"}, answer) {
				failures += n
			}
			if n > 0 {
				got[answer] += n
			}
		}
		total := r.Snapshot(nil).Total
		if total.Block > 0 {
			got["429"] += total.Block
		}
		if total.Exception != failures {
			t.Errorf("%s: %d exceptions of %v", r.Name(), total.Exception, got)
		}
		all[r.Name()] = got
	}
	return all
}
