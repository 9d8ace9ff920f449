package adapters_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"
	echov5 "github.com/labstack/echo/v5"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/chistat"
	"github.com/windowstat/windowstat/collector/echostat"
	"github.com/windowstat/windowstat/collector/echov5stat"
	"github.com/windowstat/windowstat/collector/ginstat"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// services has a function for each way to add the middleware to a service. Each function makes a service from one
// handler. If the Collector is nil, the service has no middleware.
var services = map[string]func(c *collector.Collector, h http.HandlerFunc) http.Handler{
	"Mux": func(c *collector.Collector, h http.HandlerFunc) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("/{path...}", h)
		return httpstat.Mux(c, mux)
	},
	"Route": func(c *collector.Collector, h http.HandlerFunc) http.Handler { return httpstat.Route(c, "x", h) },
	"Handler": func(c *collector.Collector, h http.HandlerFunc) http.Handler {
		return httpstat.Handler(c, func(r *http.Request) string { return r.Method }, h)
	},
	"Mux below Route": func(c *collector.Collector, h http.HandlerFunc) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("/{path...}", h)
		return httpstat.Route(c, "outer", httpstat.Mux(c, mux))
	},
	"gin": func(c *collector.Collector, h http.HandlerFunc) http.Handler {
		e := gin.New()
		if c != nil {
			e.Use(ginstat.Middleware(c))
		}
		e.Any("/*path", gin.WrapF(h))
		return e
	},
	"gin below Mux": func(c *collector.Collector, h http.HandlerFunc) http.Handler {
		e := gin.New()
		e.Any("/*path", gin.WrapF(h))
		mux := http.NewServeMux()
		mux.Handle("/", e)
		return httpstat.Mux(c, mux)
	},
	"echo 4": func(c *collector.Collector, h http.HandlerFunc) http.Handler {
		e := echo.New()
		e.Logger.SetOutput(io.Discard)
		// Outer middleware may install hooks in the response. This middleware does so.
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(ec echo.Context) error {
				ec.Response().Before(func() { ec.Response().Header().Set("X-Before", "1") })
				return next(ec)
			}
		})
		if c != nil {
			e.Use(echostat.Middleware(c))
		}
		e.Any("/*", echo.WrapHandler(h))
		return e
	},
	"echo 5": func(c *collector.Collector, h http.HandlerFunc) http.Handler {
		e := echov5.New()
		e.Logger = slog.New(slog.DiscardHandler)
		e.Use(func(next echov5.HandlerFunc) echov5.HandlerFunc {
			return func(ec *echov5.Context) error {
				r := responseV5(ec)
				r.Before(func() { r.Header().Set("X-Before", "1") })
				return next(ec)
			}
		})
		if c != nil {
			e.Use(echov5stat.Middleware(c))
		}
		e.Any("/*", echov5.WrapHandler(h))
		return e
	},
	"chi": func(c *collector.Collector, h http.HandlerFunc) http.Handler {
		r := chi.NewRouter()
		if c != nil {
			r.Use(chistat.Middleware(c))
		}
		r.HandleFunc("/*", h)
		return r
	},
}

// notes records observations of three kinds: of a handler, of the middleware outside of the service, and of the client.
// The client runs concurrently with the handler.
type notes struct {
	mu            sync.Mutex
	lines, client []string
	ended         chan struct{} // receives a value when a request has ended
}

// got adds an observation of the client.
func (n *notes) got(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.client = append(n.client, fmt.Sprintf(format, args...))
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

// outside returns middleware around the service. After the service has returned, this middleware notes the fields of
// the request.
func (n *notes) outside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, header := r.Context(), r.Header
		defer func() {
			n.add("afterwards: pattern %q, path %q, mine %q, form %v, post form %v, multipart %t, trailer %v, body %T",
				r.Pattern, r.PathValue("path"), r.PathValue("mine"), r.Form, r.PostForm, r.MultipartForm != nil,
				r.Trailer, r.Body)
			n.add("same context %t, same header %t, %v", r.Context() == ctx, fmt.Sprintf("%p", header) ==
				fmt.Sprintf("%p", r.Header), r.Context().Value(assigned{}))
			n.ended <- struct{}{}
		}()
		next.ServeHTTP(w, r)
	})
}

// assigned is the context key of a value that a handler adds to its request.
type assigned struct{}

// behavior is one way in which a service treats a request.
type behavior struct {
	name    string
	handle  func(n *notes, w http.ResponseWriter, r *http.Request)
	request string                                    // text that the client sends before it reads all responses
	client  func(t *testing.T, n *notes, addr string) // if not nil, runs instead of the client that sends the request
	files   bool                                      // the handler may leave files in TMPDIR
	// If http2 is set, server and client use HTTP/2, and the field request is only the body of a POST request.
	http2 bool
}

var changing = regexp.MustCompile(`(?m)^(Date|Sec-WebSocket-Accept|Last-Modified): .*$|127\.0\.0\.1:\d+|0x[0-9a-f]{6,}`)

// transcript serves one request and returns a text with everything that can be observed: the bytes that the client
// gets, the notes, and the number of files that are left in TMPDIR.
func (b behavior) transcript(t *testing.T, service http.Handler, n *notes) string {
	dir := t.TempDir()
	if b.files {
		t.Setenv("TMPDIR", dir)
	}
	srv := httptest.NewUnstartedServer(n.outside(service))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.EnableHTTP2 = b.http2
	if b.http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	defer srv.Close()
	addr := srv.Listener.Addr().String()
	switch {
	case b.client != nil:
		b.client(t, n, addr)
	case b.http2:
		n.got("%s", sendHTTP2(t, srv, b.request))
	default:
		n.got("%s", sendBytes(t, addr, b.request))
	}
	select {
	case <-n.ended:
	case <-time.After(10 * time.Second):
		t.Error("the handler does not return")
	}
	srv.Close() // waits until net/http has ended the request
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return changing.ReplaceAllString(strings.Join(append(n.lines, n.client...), "\n"), "$1") + fmt.Sprintf(
		"\n%d files",
		len(files),
	)
}

// sendBytes sends the text of one or several requests on one connection, and returns all bytes of the responses.
func sendBytes(t *testing.T, addr, requests string) string {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	go func() { // concurrently, because the server may close the connection before it has read all requests
		_, _ = io.WriteString(c, requests)
	}()
	var got bytes.Buffer
	_, _ = io.Copy(&got, c)
	return got.String()
}

// sendHTTP2 sends a POST with a body, and describes the response.
func sendHTTP2(t *testing.T, srv *httptest.Server, body string) string {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/a", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/plain")
	req.Trailer = http.Header{"X-Sum": {"1"}}
	resp, err := srv.Client().Do(req)
	if err != nil {
		return "no response"
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	resp.Header.Del("Date") // the requests with and without the middleware may happen in different seconds
	return fmt.Sprint(resp.Status, resp.Header, resp.ContentLength, string(got), err, resp.Trailer)
}

// A service with the middleware behaves exactly like a service without it. Clients get the same bytes, the same number
// of temporary files is left, and handlers and outer middleware make the same observations.
func TestServiceIsTheSameWithMiddleware(t *testing.T) {
	for name, service := range services {
		for _, b := range behaviors {
			t.Run(name+"/"+b.name, func(t *testing.T) {
				if !b.files {
					t.Parallel()
				}
				run := func(c *collector.Collector) string {
					n := &notes{ended: make(chan struct{}, 10)}
					return b.transcript(
						t,
						service(c, func(w http.ResponseWriter, r *http.Request) { b.handle(n, w, r) }),
						n,
					)
				}
				c := newCollector(t)
				without, with := run(nil), run(c)
				if with != without {
					t.Errorf("without middleware:\n%s\n\nwith:\n%s", without, with)
				}
				counted(t, c) // waits until no call is in flight
				if total := c.Inbound().Snapshot(nil).Total; total.Complete == 0 {
					t.Error("no call was counted")
				}
			})
		}
	}
	names := map[string]bool{}
	for _, b := range behaviors {
		if names[b.name] {
			t.Errorf("%s occurs twice", b.name)
		}
		names[b.name] = true
	}
}
