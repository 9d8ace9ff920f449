package httpstat_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// answered returns the number of calls by code, with "" for calls without a code.
func answered(t testing.TB, c *collector.Collector) map[string]int64 {
	t.Helper()
	counts(t, c) // counts waits until all calls have ended
	all := map[string]int64{}
	for _, r := range c.Seal().Resources {
		for code, n := range r.View().Codes() {
			if n > 0 {
				all[code.String()] += n
			}
		}
	}
	return all
}

// answers is a service that responds to the path /404 with status 404, and so on. Other paths have special responses.
func answers(w http.ResponseWriter, r *http.Request) {
	way := strings.TrimPrefix(r.URL.Path, "/")
	switch way {
	case "silent":
	case "body":
		fmt.Fprint(w, "200, though nobody said so")
	case "flush":
		_ = http.NewResponseController(w).Flush()
	case "early":
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
		w.WriteHeader(http.StatusGone)
	case "twice":
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusInternalServerError)
	case "panic":
		panic(http.ErrAbortHandler)
	case "invalid": // net/http panics before the response begins
		w.WriteHeader(1000)
	case "mended":
		func() {
			defer func() { _ = recover() }()
			w.WriteHeader(99)
		}()
		w.WriteHeader(http.StatusConflict)
	case "cut": // the client gets the status, but an incomplete body
		w.WriteHeader(http.StatusPartialContent)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "upgrade":
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = buf.Flush()
	default:
		status, err := strconv.Atoi(way)
		if err != nil {
			panic(err)
		}
		w.WriteHeader(status)
	}
}

// A load tool, the service and the Transport count the same number of responses for each status. The requests include
// methods without a response body, informational responses, requests without a response, upgrades, aborted connections,
// and unregistered statuses.
func TestCodesEqualTheCountsOfALoadTool(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("http2=", http2), func(t *testing.T) {
			server, client := newCollector(t), newCollector(t)
			srv := httptest.NewUnstartedServer(httpstat.Route(server, "all", http.HandlerFunc(answers)))
			srv.EnableHTTP2, srv.Config.ErrorLog = http2, discard
			srv.StartTLS()
			defer srv.Close()
			load := srv.Client()
			load.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			load.Transport = httpstat.Transport(client, func(*http.Request) string { return "all" }, load.Transport)

			ways := []string{
				"200", "200", "401", "404", "304", "204", "500", "503", "599", "600", "999", "301", "silent", "body",
				"flush", "early", "twice", "panic", "invalid", "mended", "cut",
			}
			if !http2 {
				ways = append(ways, "upgrade")
			}
			var mu sync.Mutex
			got, hints := map[string]int64{}, 0
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					random := rand.New(rand.NewPCG(uint64(g), 1))
					for range 200 {
						way := ways[random.IntN(len(ways))]
						// If the server breaks the connection, the request must be a POST, for two reasons. net/http's
						// client may resend other requests. And the response to a HEAD is complete after its header, so
						// the client could send the next request over the same connection, just before the server
						// breaks it.
						method := "POST"
						if !slices.Contains([]string{"panic", "invalid", "cut", "upgrade"}, way) {
							method = []string{"POST", "POST", "HEAD"}[random.IntN(3)]
						}
						ctx := httptrace.WithClientTrace(
							t.Context(),
							&httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error {
								mu.Lock()
								hints++
								mu.Unlock()
								return nil
							}},
						)
						req, err := http.NewRequestWithContext(ctx, method, srv.URL+"/"+way, strings.NewReader("x"))
						if err != nil {
							t.Error(err)
							return
						}
						code := ""
						if resp, err := load.Do(req); err == nil {
							_, _ = io.Copy(io.Discard, resp.Body)
							resp.Body.Close()
							code = collector.HTTPStatus(resp.StatusCode).String()
						}
						mu.Lock()
						got[code]++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			if s := answered(t, server); !maps.Equal(s, got) {
				t.Errorf("the service has %v, the load tool %v", s, got)
			}
			if s := answered(t, client); !maps.Equal(s, got) {
				t.Errorf("the transport has %v, the load tool %v", s, got)
			}
			if len(got) < 14 || hints == 0 || got[""] == 0 || got[collector.OtherCode] == 0 ||
				got["101"] == 0 && !http2 {
				t.Errorf("%v, %d informational answers", got, hints)
			}
		})
	}
}

// If a client cancels its call before the response, the call has no code on the client's side. On the service's side
// the request has the code 499, although the service then sends another status.
func TestAbortedCallsHaveNoCode(t *testing.T) {
	server, client := newCollector(t), newCollector(t)
	gone := make(chan struct{})
	srv := httptest.NewServer(
		httpstat.Route(server, "all", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(gone)
			<-r.Context().Done()
			w.WriteHeader(http.StatusTeapot)
		})),
	)
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-gone; cancel() }()
	req, err := http.NewRequestWithContext(ctx, "POST", srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&http.Client{Transport: httpstat.Transport(client, nil, nil)}).Do(req); !errors.Is(
		err,
		context.Canceled,
	) {
		t.Error(err)
	}
	if got, want := answered(t, server), (map[string]int64{"499": 1}); !maps.Equal(got, want) {
		t.Errorf("the service has %v, want %v", got, want)
	}
	if got, want := answered(t, client), (map[string]int64{"": 1}); !maps.Equal(got, want) {
		t.Errorf("the client has %v, want %v", got, want)
	}
}

// A request that a limit refused is a block, not a completion with 429. A 429 of the service is a completion.
func TestRefusalsHaveNoCode(t *testing.T) {
	c := newCollector(t)
	if err := c.SetLimits([]collector.Limit{{Resource: "all", Count: 1}}); err != nil {
		t.Fatal(err)
	}
	h := httpstat.Route(c, "all", http.HandlerFunc(answers))
	for range 3 {
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, httptest.NewRequest("GET", "/429", nil)); rec.Code != http.StatusTooManyRequests {
			t.Error(rec.Code)
		}
	}
	if got, want := answered(t, c), (map[string]int64{"429": 1}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if s := c.Resource("all").Snapshot(nil).Total; s.Block != 2 || s.Complete != 1 {
		t.Errorf("%+v", s)
	}
}

// A hijacked request is counted with status 101, unless the handler has written a status before. If the hijack fails,
// the request has the status of its response.
func TestTheCodeOfAHijack(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"refused": {func(w http.ResponseWriter, _ *http.Request) {
			_, _,
				_ = http.NewResponseController(w).Hijack()
		}, "200"},
		"by controller": {func(w http.ResponseWriter,
			_ *http.Request,
		) {
			hijack(t, http.NewResponseController(w).Hijack)
		}, "101"},
		"after a status": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			hijack(t, w.(http.Hijacker).Hijack)
		}, "200"},
		"and a panic": {func(w http.ResponseWriter, _ *http.Request) {
			hijack(t, w.(http.Hijacker).Hijack)
			panic(http.ErrAbortHandler)
		}, "101"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t)
			srv := httptest.NewUnstartedServer(httpstat.Route(c, "all", tc.handler))
			srv.EnableHTTP2, srv.Config.ErrorLog = name == "refused", discard
			srv.StartTLS()
			defer srv.Close()
			if resp, err := srv.Client().Post(srv.URL, "", nil); err == nil {
				resp.Body.Close()
			}
			if got := answered(t, c); !maps.Equal(got, map[string]int64{tc.want: 1}) {
				t.Errorf("%v, want %s", got, tc.want)
			}
		})
	}
}

func hijack(t *testing.T, by func() (net.Conn, *bufio.ReadWriter, error)) {
	conn, _, err := by()
	if err != nil {
		t.Error(err)
		return
	}
	conn.Close()
}

// Handlers and Transport have the same rule for exceptions, and the same option to change the rule.
func TestException(t *testing.T) {
	for name, tc := range map[string]struct {
		opts []httpstat.Option
		want map[int]bool
	}{
		"default": {nil, map[int]bool{200: false, 404: false, 499: false, 500: true, 599: true, 999: true}},
		"nil":     {[]httpstat.Option{httpstat.Exception(nil)}, map[int]bool{404: false, 500: true}},
		"OpenTelemetry": {
			[]httpstat.Option{httpstat.Exception(func(status int) bool { return status >= 400 })},
			map[int]bool{302: false, 404: true, 500: true},
		},
		"but one": {[]httpstat.Option{httpstat.Exception(func(status int) bool {
			return status >= 500 &&
				status != 501
		})}, map[int]bool{500: true, 501: false}},
	} {
		for status, want := range tc.want {
			server, client := newCollector(t), newCollector(t)
			srv := httptest.NewServer(httpstat.Route(server, "all", http.HandlerFunc(answers), tc.opts...))
			hc := &http.Client{
				Transport:     httpstat.Transport(client, func(*http.Request) string { return "all" }, nil, tc.opts...),
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			}
			resp, err := hc.Get(fmt.Sprintf("%s/%d", srv.URL, status))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			srv.Close()
			for side, c := range map[string]*collector.Collector{"server": server, "client": client} {
				if got := counts(t, c)["all"]; strings.Contains(got, "1 exception") != want {
					t.Errorf("%s, %d at the %s: %s, want %t", name, status, side, got, want)
				}
			}
		}
	}
}

// If the function of the option Exception panics, the call is an exception. The call ends once, and is counted with its
// code.
func TestExceptionFunctionPanics(t *testing.T) {
	for way, end := range ways {
		server, client := newCollector(t), newCollector(t)
		broken := httpstat.Exception(func(int) bool { end(); return false })
		alone(func() {
			httpstat.Route(
				server, "all", http.HandlerFunc(answers), broken,
			).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/204", nil))
		})
		rt := httpstat.Transport(
			client,
			func(*http.Request) string { return "all" },
			roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
			}),
			broken,
		)
		alone(func() { _, _ = rt.RoundTrip(httptest.NewRequest("GET", "http://example.com/", nil)) })
		for side, c := range map[string]*collector.Collector{"server": server, "client": client} {
			want(t, c, map[string]string{"all": "1 pass, 1 complete, 1 exception, 0 in flight"})
			if got := answered(t, c); !maps.Equal(got, map[string]int64{"204": 1}) {
				t.Errorf("%s, %s: %v", way, side, got)
			}
		}
	}
}

// Skipped requests are served and sent as if package httpstat were not used: no limit applies to them, and calls that
// their handlers make are outermost calls. If a Skip function panics, its request is not counted.
func TestSkip(t *testing.T) {
	c, client := newCollector(t), newCollector(t)
	if err := c.SetLimits([]collector.Limit{{Resource: "*", Count: 0}}); err != nil {
		t.Fatal(err)
	}
	if err := client.SetLimits([]collector.Limit{{Resource: "*", Count: 0}}); err != nil {
		t.Fatal(err)
	}
	skip := []httpstat.Option{
		httpstat.Skip(func(r *http.Request) bool { return r.URL.Path == "/healthz" }),
		httpstat.Skip(nil),
		httpstat.Skip(func(r *http.Request) bool { return r.Method == http.MethodOptions }),
	}
	name := func(*http.Request) string { return "all" }
	srv := httptest.NewServer(httpstat.Handler(c, name, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(io.ReaderFrom); !ok {
			t.Error("not net/http's own writer")
		}
	}), skip...))
	defer srv.Close()
	for _, tc := range []struct {
		method, path string
		want         int
	}{{"GET", "/healthz", 200}, {"OPTIONS", "/", 200}, {"GET", "/", 429}} {
		req, err := http.NewRequest(tc.method, srv.URL+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tc.want {
			t.Errorf("%s %s: %d, want %d", tc.method, tc.path, resp.StatusCode, tc.want)
		}
		_, err = httpstat.Transport(client, name, nil, skip...).RoundTrip(req)
		if errors.Is(err, collector.ErrBlocked) != (tc.want == 429) {
			t.Errorf("%s %s, sent: %v", tc.method, tc.path, err)
		}
	}
	for side, c := range map[string]*collector.Collector{"server": c, "client": client} {
		if s := c.Resource("all").Snapshot(nil).Total; s.Block != 1 || s.Pass != 0 {
			t.Errorf("%s: %+v", side, s)
		}
	}
	h := httpstat.Route(c, "all", http.NotFoundHandler(), httpstat.Skip(func(*http.Request) bool { panic("boom") }))
	if got := alone(func() {
		h.ServeHTTP(httptest.NewRecorder(),
			httptest.NewRequest("GET", "/", nil))
	}); got != "boom" {
		t.Errorf("the panic that came out is %v", got)
	}
	if s := c.Resource("all").Snapshot(nil); s.InFlight != 0 || s.Total.Pass != 0 {
		t.Errorf("%+v", s)
	}
}
