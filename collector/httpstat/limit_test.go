package httpstat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// A refused request does not reach the handler. The response is 429 with Retry-After, and the request is a block.
func TestLimits(t *testing.T) {
	c := newCollector(t)
	if err := c.SetLimits([]collector.Limit{{Resource: "/a", Origin: "bot", Count: 2, Strict: true}}); err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/a", func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if _, e, err := c.Enter(r.Context(), "below"); err == nil {
			e.Exit(nil)
		}
	})
	srv := httptest.NewServer(httpstat.Mux(c, mux, httpstat.OriginHeader("X-Client"), httpstat.Entrance("front")))
	defer srv.Close()
	send := func(client string) *http.Response {
		t.Helper()
		req, err := http.NewRequest("GET", srv.URL+"/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Client", client)
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	status := map[string]int{}
	for range 3 {
		for _, client := range []string{"bot", "human", ""} {
			resp := send(client)
			status[fmt.Sprint(client, " ", resp.StatusCode)]++
			if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "1" {
				t.Error("no Retry-After")
			}
		}
	}
	if fmt.Sprint(status) != "map[ 200:3 bot 200:2 bot 429:1 human 200:3]" || reached.Load() != 8 {
		t.Errorf("%v, %d reached", status, reached.Load())
	}
	want(t, c, map[string]string{
		"/a":    "8 pass, 8 complete, 0 exception, 0 in flight",
		"below": "8 pass, 8 complete, 0 exception, 0 in flight",
	})
	var parts []string
	for origin, v := range c.Resource("/a").Origins() {
		total := v.Snapshot(nil).Total
		parts = append(parts, fmt.Sprintf("%q %d %d", origin, total.Pass, total.Block))
	}
	if got := strings.Join(parts, ", "); got != `"" 3 0, "bot" 2 1, "human" 3 0` {
		t.Errorf("origins %s", got)
	}
	entrance := c.Tree().Children()[0]
	if entrance.Name() != "front" || len(entrance.Children()) != 1 ||
		entrance.Children()[0].Children()[0].Name() != "below" {
		t.Error("the tree is not front > /a > below")
	}
	if in := c.Inbound().Snapshot(nil).Total; in.Pass != 8 || in.Block != 1 {
		t.Errorf("inbound %+v", in)
	}
}

func TestRefused(t *testing.T) {
	c := newCollector(t)
	if err := c.SetLimits([]collector.Limit{{Resource: "*", Count: 0}}); err != nil {
		t.Fatal(err)
	}
	h := httpstat.Route(
		c, "a", http.NotFoundHandler(),
		httpstat.Refused(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		})),
	)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	if rec.Code != http.StatusServiceUnavailable {
		t.Error(rec.Code)
	}
}

// Outer middleware can read the pattern that the inner ServeMux has set in the request.
func TestOuterMiddlewareSeesPattern(t *testing.T) {
	c := newCollector(t)
	r := httptest.NewRequest("GET", "/users/7", nil)
	httpstat.Mux(c, routes()).ServeHTTP(httptest.NewRecorder(), r)
	if r.Pattern != "GET /users/{id}" {
		t.Errorf("pattern %q", r.Pattern)
	}
}

// closed is a body that records whether it was closed.
type closed struct {
	io.Reader
	done bool
}

func (c *closed) Close() error { c.done = true; return nil }

// An outbound call ends when its response is read to the end or closed. This is true for responses with success and
// with an error status.
func TestTransport(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fail":
			http.Error(w, "no", http.StatusBadGateway)
		case "/hang":
			<-r.Context().Done()
		case "/half":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "half")
		case "/wait":
			fmt.Fprint(w, "a")
			w.(http.Flusher).Flush()
			<-release
		default:
			fmt.Fprint(w, "ok")
		}
	}))
	defer srv.Close()
	srv.Config.ErrorLog = discard
	c := newCollector(t)
	client := &http.Client{Transport: httpstat.Transport(c, func(r *http.Request) string { return r.URL.Path }, nil)}
	defer client.CloseIdleConnections()
	ctx, up, _ := c.Enter(t.Context(), "up", collector.Origin("web"))
	defer up.Exit(nil)
	send := func(ctx context.Context, path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, "GET", srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return client.Do(req)
	}
	for _, path := range []string{"/ok", "/fail", "/half"} {
		resp, err := send(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(resp.Body)
		if (err != nil) != (path == "/half") {
			t.Errorf("%s: %v", path, err)
		}
		if n := c.Resource(path).InFlight(); n != 0 {
			t.Errorf("%s: %d in flight after the response was read", path, n)
		}
		resp.Body.Close()
	}
	resp, err := send(ctx, "/wait")
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Resource("/wait").InFlight(); n != 1 {
		t.Errorf("%d in flight before the response was read", n)
	}
	close(release)
	resp.Body.Close()
	hang, cancel := context.WithCancel(ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := send(hang, "/hang"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	req, err := http.NewRequest("GET", "http://127.0.0.1:1/down", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(req); err == nil {
		t.Error("a process listens on port 1")
	}
	if err := c.SetLimits([]collector.Limit{{Resource: "/refused", Count: 0}}); err != nil {
		t.Fatal(err)
	}
	body := &closed{Reader: strings.NewReader("x")}
	req, err = http.NewRequest("POST", srv.URL+"/refused", body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(req); !errors.Is(err, collector.ErrBlocked) || !body.done {
		t.Errorf("%v, body closed: %t", err, body.done)
	}
	for name, want := range map[string]string{
		"/ok": "1 1 0", "/fail": "1 1 1", "/half": "1 1 1", "/wait": "1 1 0", "/hang": "1 1 0", "/down": "1 1 1",
		"/refused": "0 0 0",
	} {
		s := c.Resource(name).Snapshot(nil)
		if got := fmt.Sprint(s.Total.Pass, s.Total.Complete, s.Total.Exception); got != want || s.InFlight != 0 {
			t.Errorf("%s: %s, %d in flight; want %s", name, got, s.InFlight, want)
		}
	}
	for _, child := range c.Tree().Children()[0].Children() {
		if child.Name() == "up" && len(child.Children()) != 5 {
			t.Errorf("%d calls below up", len(child.Children()))
		}
	}
	for origin := range c.Resource("/ok").Origins() {
		if origin != "" {
			t.Errorf("the origin %q was passed on", origin)
		}
	}
}

func TestTransportNames(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	c := newCollector(t)
	resp, err := (&http.Client{Transport: httpstat.Transport(c, nil, nil)}).Get(srv.URL + "/x?y")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	want(
		t,
		c,
		map[string]string{
			"GET " + strings.TrimPrefix(srv.URL, "http://"): "1 pass, 1 complete, 0 exception, 0 in flight",
		},
	)
	if httpstat.Transport(nil, nil, nil) != http.DefaultTransport {
		t.Error("Transport wraps the RoundTripper although the Collector is nil")
	}
}
