package httpstat_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

func newCollector(t testing.TB) *collector.Collector {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// counts returns the counts of each resource as text. It first waits until no call is in flight, because a client may
// get the response before the handler returns.
func counts(t testing.TB, c *collector.Collector) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, r := range c.Seal().Resources {
		s := r.Snapshot(nil)
		deadline := time.Now().Add(10 * time.Second)
		for ; s.InFlight > 0 && time.Now().Before(deadline); s = r.Snapshot(nil) {
			time.Sleep(time.Millisecond)
		}
		got[r.Name()] = fmt.Sprintf(
			"%d pass, %d complete, %d exception, %d in flight", s.Total.Pass, s.Total.Complete, s.Total.Exception,
			s.InFlight,
		)
	}
	return got
}

func want(t *testing.T, c *collector.Collector, want map[string]string) {
	t.Helper()
	got := counts(t, c)
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %q, want %q", name, got[name], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("resources %v, want %v", got, want)
	}
}

// serve starts a server, and returns a function that sends one request and reads the whole response.
func serve(t *testing.T, h http.Handler, http2 bool) func(method, path string) (string, error) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = http2
	srv.Config.ErrorLog = discard
	if http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return func(method, path string) (string, error) {
		req, err := http.NewRequestWithContext(context.Background(), method, srv.URL+path, nil)
		if err != nil {
			return "", err
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(body)), err
	}
}

func routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.PathValue("id")) })
	mux.HandleFunc("POST /users/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	mux.HandleFunc("/silent", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/fail", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) })
	mux.HandleFunc(
		"/refuse",
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
	)
	mux.HandleFunc("/twice", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.WriteHeader(http.StatusInternalServerError) // has no effect: the client gets 200
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("boom") })
	mux.HandleFunc("/abort", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		panic(http.ErrAbortHandler)
	})
	return mux
}

func TestMux(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("http2=", http2), func(t *testing.T) {
			c := newCollector(t)
			send := serve(t, httpstat.Mux(c, routes()), http2)
			for _, tc := range []struct{ method, path, want string }{
				{"GET", "/users/1", "200 1"},
				{"GET", "/users/2%20x", "200 2 x"},
				{"POST", "/users/", "201 "},
				{"GET", "/silent", "200 "},
				{"GET", "/fail", "502 no\n"},
				{"GET", "/refuse", "403 no\n"},
				{"GET", "/twice", "200 "},
				{"GET", "/hints", "503 "},
				{"GET", "/nothing/here", "404 404 page not found\n"},
				{"DELETE", "/users/1", "405 Method Not Allowed\n"},
			} {
				if got, err := send(tc.method, tc.path); err != nil || got != tc.want {
					t.Errorf("%s %s: %q, %v; want %q", tc.method, tc.path, got, err, tc.want)
				}
			}
			for _, path := range []string{"/panic", "/abort"} {
				if got, err := send("GET", path); err == nil {
					t.Errorf("%s answered %q", path, got)
				}
			}
			// If a connection breaks before the response, net/http's client sends a GET request again, so the handler
			// panics once or twice.
			got := counts(t, c)
			if p := got["/panic"]; p != "1 pass, 1 complete, 1 exception, 0 in flight" &&
				p != "2 pass, 2 complete, 2 exception, 0 in flight" {
				t.Errorf("/panic: %s", p)
			}
			const ok = "1 pass, 1 complete, 0 exception, 0 in flight"
			const failed = "1 pass, 1 complete, 1 exception, 0 in flight"
			want(t, c, map[string]string{
				"GET /users/{id}":  "2 pass, 2 complete, 0 exception, 0 in flight",
				"POST /users/":     ok,
				"/silent":          ok,
				"/fail":            failed,
				"/refuse":          ok,
				"/twice":           ok,
				"/hints":           failed,
				"/panic":           got["/panic"],
				"/abort":           failed,
				httpstat.Unmatched: "2 pass, 2 complete, 0 exception, 0 in flight",
			})
		})
	}
}

func TestRouteAndHandler(t *testing.T) {
	c := newCollector(t)
	send := serve(t, httpstat.Route(c, "all", routes()), false)
	for _, path := range []string{"/silent", "/fail", "/x/y/z"} {
		if _, err := send("GET", path); err != nil {
			t.Error(err)
		}
	}
	byHost := httpstat.Handler(c, func(r *http.Request) string { return r.Header.Get("X-None") }, routes())
	send = serve(t, byHost, false)
	if _, err := send("GET", "/silent"); err != nil {
		t.Error(err)
	}
	want(t, c, map[string]string{
		"all":              "3 pass, 3 complete, 1 exception, 0 in flight",
		httpstat.Unmatched: "1 pass, 1 complete, 0 exception, 0 in flight",
	})
}

func TestNilCollectorOnlyServes(t *testing.T) {
	mux := routes()
	if h := httpstat.Mux(nil, mux); h != http.Handler(mux) {
		t.Error("Mux wraps the handler although the Collector is nil")
	}
	if h := httpstat.Route(nil, "x", mux); h != http.Handler(mux) {
		t.Error("Route wraps the handler although the Collector is nil")
	}
}

// The handler flushes events. Each event reaches the client while the handler is running.
func TestStreaming(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		c := newCollector(t)
		more := make(chan struct{})
		srv := httptest.NewUnstartedServer(
			httpstat.Route(c, "stream", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for i := range 3 {
					fmt.Fprintln(w, "event", i)
					if i == 0 {
						w.(http.Flusher).Flush()
					} else if err := http.NewResponseController(w).Flush(); err != nil {
						t.Errorf("Flush: %v", err)
					}
					<-more
				}
			})),
		)
		srv.EnableHTTP2 = http2
		srv.StartTLS()
		resp, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		for i := range 3 {
			if !lines.Scan() || lines.Text() != fmt.Sprint("event ", i) {
				t.Fatalf("http2 %t: line %d is %q", http2, i, lines.Text())
			}
			if s := c.Resource("stream").Snapshot(nil); s.InFlight != 1 {
				t.Errorf("http2 %t: %d in flight while streaming", http2, s.InFlight)
			}
			more <- struct{}{}
		}
		resp.Body.Close()
		srv.Close()
		want(t, c, map[string]string{"stream": "1 pass, 1 complete, 0 exception, 0 in flight"})
	}
}

func TestHijack(t *testing.T) {
	c := newCollector(t)
	srv := httptest.NewServer(httpstat.Route(c, "ws", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hijack := w.(http.Hijacker).Hijack
		if r.URL.Path == "/controller" {
			hijack = http.NewResponseController(w).Hijack
		}
		conn, buf, err := hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		line, _ := buf.ReadString('\n')
		fmt.Fprintf(buf, "you said %s", line)
		buf.Flush()
	})))
	defer srv.Close()
	for _, path := range []string{"/", "/controller"} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\nhello\n", path)
		answer, _ := io.ReadAll(conn)
		if string(answer) != "you said hello\n" {
			t.Errorf("%s: %q", path, answer)
		}
		conn.Close()
	}
	want(t, c, map[string]string{"ws": "2 pass, 2 complete, 0 exception, 0 in flight"})
}

// The writer that the handler gets has the method ReadFrom, with which http.ServeFile sends a file. The handler can
// also set a deadline through http.ResponseController.
func TestReadFromAndDeadlines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCollector(t)
	send := serve(t, httpstat.Route(c, "file", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(io.ReaderFrom); !ok {
			t.Error("no ReaderFrom")
		}
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		http.ServeFile(w, r, path)
	})), false)
	if got, err := send("GET", "/"); err != nil || len(got) != 100_004 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	want(t, c, map[string]string{"file": "1 pass, 1 complete, 0 exception, 0 in flight"})
}

// The ResponseWriter that the handler gets has exactly the optional interfaces of the original ResponseWriter.
func TestWrappedWriterKeepsOptionalInterfaces(t *testing.T) {
	type all interface {
		http.ResponseWriter
		http.Flusher
		http.Hijacker
		http.Pusher
		io.ReaderFrom
	}
	_ = all(nil)
	for name, tc := range map[string]struct {
		w                         http.ResponseWriter
		flush, hijack, push, read bool
	}{
		"plain":    {plain{}, false, false, false, false},
		"recorder": {httptest.NewRecorder(), true, false, false, false},
		"hijacker": {struct {
			plain
			http.Flusher
			http.Hijacker
		}{}, true, true, false, false},
	} {
		httpstat.Route(newCollector(t), "x", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, flush := w.(http.Flusher)
			_, hijack := w.(http.Hijacker)
			_, push := w.(http.Pusher)
			_, read := w.(io.ReaderFrom)
			if flush != tc.flush || hijack != tc.hijack || push != tc.push || read != tc.read {
				t.Errorf("%s: flush %t, hijack %t, push %t, read %t", name, flush, hijack, push, read)
			}
		})).ServeHTTP(tc.w, httptest.NewRequest("GET", "/", nil))
	}
}

type plain struct{}

func (plain) Header() http.Header         { return http.Header{} }
func (plain) Write(b []byte) (int, error) { return len(b), nil }
func (plain) WriteHeader(int)             {}

func BenchmarkHandler(b *testing.B) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(http.ResponseWriter, *http.Request) {})
	c := newCollector(b)
	req := httptest.NewRequest("GET", "/users/1", nil)
	for name, h := range map[string]http.Handler{
		"bare": mux, "Mux": httpstat.Mux(c, mux), "Route": httpstat.Route(c, "x", mux),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(plain{}, req)
			}
		})
	}
}

// If a trace is recorded, its ID becomes an exemplar.
func TestTrace(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for header, want := range map[string]string{
		"00-" + id + "-00f067aa0ba902b7-01":        id,
		"00-" + id + "-00f067aa0ba902b7-00":        "", // the flags do not mark the trace as recorded
		"01-" + id + "-00f067aa0ba902b7-03-future": id,
		"":                                      "",
		"00-" + id:                              "",
		"00-" + id[1:] + "-00f067aa0ba902b7-01": "",
		"00-" + strings.ToUpper(id) + "-00f067aa0ba902b7-01":      "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
	} {
		c := newCollector(t)
		h := httpstat.Route(c, "a", http.NotFoundHandler(), httpstat.Trace(httpstat.TraceParent))
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Traceparent", header)
		h.ServeHTTP(httptest.NewRecorder(), r)
		got := ""
		for _, x := range c.Resource("a").Exemplars() {
			got = x.TraceID
		}
		if got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}
