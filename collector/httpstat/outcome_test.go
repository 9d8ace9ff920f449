package httpstat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// outcomes returns the number of calls by code, and under the key "exceptions" the number of exceptions if there are
// any.
func outcomes(t *testing.T, c *collector.Collector) map[string]int64 {
	t.Helper()
	all := answered(t, c)
	if n := c.Resource("all").Snapshot(nil).Total.Exception; n > 0 {
		all["exceptions"] = n
	}
	return all
}

// If a client hangs up before the response begins, its request is counted with 499, and not as an exception, even if
// the handler then sends an error status. If the handler panics, the request is an exception without a code. If the
// response has begun before the client hangs up, the request is counted with the status of the response.
func TestClientThatHangsUp(t *testing.T) {
	flush := func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
	for _, tc := range []struct {
		name   string
		begins bool // the response begins before the client hangs up
		handle func(w http.ResponseWriter)
		want   map[string]int64
	}{
		{"an error", false, func(w http.ResponseWriter) { http.Error(w, "no", 500) }, map[string]int64{"499": 1}},
		{"nothing", false, func(http.ResponseWriter) {}, map[string]int64{"499": 1}},
		{"success", false, func(w http.ResponseWriter) { _, _ = io.WriteString(w, "ok") }, map[string]int64{"499": 1}},
		{"an abort", false, func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, map[string]int64{"499": 1}},
		{"a panic", false, func(http.ResponseWriter) { panic("boom") }, map[string]int64{"": 1, "exceptions": 1}},
		{"a stream", true, func(w http.ResponseWriter) { flush(w) }, map[string]int64{"200": 1}},
		{
			"an aborted stream", true,
			func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
			map[string]int64{"200": 1},
		},
		{"a late status", true, func(w http.ResponseWriter) { w.WriteHeader(500) }, map[string]int64{"200": 1}},
	} {
		for _, http2 := range []bool{false, true} {
			for _, body := range []string{"", "body"} { // with a body, HTTP/1 handlers have net/http's own writer
				t.Run(fmt.Sprintf("%s/http2=%t,body=%q", tc.name, http2, body), func(t *testing.T) {
					c := newCollector(t)
					entered := make(chan struct{})
					srv := httptest.NewUnstartedServer(
						httpstat.Route(c, "all", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							_, _ = io.Copy(io.Discard, r.Body)
							if tc.begins {
								flush(w)
							}
							close(entered)
							<-r.Context().Done()
							tc.handle(w)
						})))
					srv.EnableHTTP2, srv.Config.ErrorLog = http2, discard
					srv.StartTLS()
					defer srv.Close()
					ctx, cancel := context.WithCancel(t.Context())
					go func() { <-entered; cancel() }()
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					if resp, err := srv.Client().Do(req); err == nil {
						<-ctx.Done()
						resp.Body.Close()
					}
					if got := outcomes(t, c); !maps.Equal(got, tc.want) {
						t.Errorf("counted %v, want %v", got, tc.want)
					}
				})
			}
		}
	}
}

// A deadline, and a cancellation with a cause, come from the service and not from the client. In both cases the request
// is counted with the status of the response, and a status of 500 or more is an exception.
func TestCanceledByTheService(t *testing.T) {
	for name, cancel := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 0)
		},
		"cause": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errors.New("shutting down"))
			return ctx, func() {}
		},
	} {
		c := newCollector(t)
		h := httpstat.Route(c, "all", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		get := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, end := cancel(r.Context())
			defer end()
			h.ServeHTTP(w, r.WithContext(ctx))
		}), false)
		if _, err := get(http.MethodGet, "/"); err != nil {
			t.Error(err)
		}
		if got, want := outcomes(t, c), (map[string]int64{"503": 1, "exceptions": 1}); !maps.Equal(got, want) {
			t.Errorf("%s: counted %v, want %v", name, got, want)
		}
	}
}

// The code of a gRPC response is in its trailers, or in its header. Servers and clients have the same rules for
// exceptions as in package grpcstat.
func TestGRPCStatus(t *testing.T) {
	respond := func(w http.ResponseWriter, r *http.Request) {
		place, status, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		switch place {
		case "header":
			w.Header().Set("Grpc-Status", status)
		case "announced":
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = io.WriteString(w, "message")
			w.Header().Set("Grpc-Status", status)
		case "trailer":
			_, _ = io.WriteString(w, "message")
			// Without a flush, net/http sends a short HTTP/1 response with a length and without trailers.
			_ = http.NewResponseController(w).Flush()
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", status)
		case "error":
			w.WriteHeader(http.StatusBadGateway)
		}
	}
	for _, tc := range []struct{ path, contentType, server, client string }{
		{"/header/0", "application/grpc", "OK", "OK"},
		{"/header/5", "application/grpc+proto", "NotFound", "NotFound"},
		{"/trailer/13", "application/grpc", "Internal, exception", "Internal, exception"},
		{"/announced/14", "application/grpc", "Unavailable, exception", "Unavailable, exception"},
		{"/announced/8", "application/grpc", "ResourceExhausted", "ResourceExhausted, exception"},
		{"/trailer/99", "application/grpc", "other, exception", "other, exception"},
		{"/trailer/x", "application/grpc", "Unknown, exception", "Unknown, exception"},
		{"/none", "application/grpc", "200", "200"},
		{"/error", "application/grpc", "502, exception", "502, exception"},
		{"/header/13", "text/plain", "200", "200"},
	} {
		for _, http2 := range []bool{false, true} {
			server, client := newCollector(t), newCollector(t)
			srv := httptest.NewUnstartedServer(httpstat.Route(server, "all", http.HandlerFunc(respond)))
			srv.EnableHTTP2 = http2
			srv.StartTLS()
			hc := srv.Client()
			hc.Transport = httpstat.Transport(client, func(*http.Request) string { return "all" }, hc.Transport)
			resp, err := hc.Post(srv.URL+tc.path, tc.contentType, strings.NewReader("message"))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			place, status, _ := strings.Cut(tc.path[1:], "/")
			if got := resp.Trailer.Get("Grpc-Status"); got != status && (place == "trailer" || place == "announced") {
				t.Errorf("%s: the caller of the transport gets the trailer %q", tc.path, got)
			}
			srv.Close()
			for c, want := range map[*collector.Collector]string{server: tc.server, client: tc.client} {
				code, failed := strings.CutSuffix(want, ", exception")
				all := map[string]int64{code: 1}
				if failed {
					all["exceptions"] = 1
				}
				if got := outcomes(t, c); !maps.Equal(got, all) {
					t.Errorf("%s, HTTP/2 %t, server %t: %v, want %v", tc.path, http2, c == server, got, all)
				}
			}
		}
	}
}

// The handler of a request with a body has the writer of net/http itself. If this test fails with a new release of Go,
// the fields of net/http's writer have other names; see serverFields.
func TestHandlerHasTheWriterOfTheServer(t *testing.T) {
	c := newCollector(t)
	var outer http.ResponseWriter
	h := httpstat.Route(c, "all", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if same := w == outer; same != (r.ContentLength != 0) {
			t.Errorf("with %d bytes, the writer is the same: %t", r.ContentLength, same)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		outer = w
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	for _, body := range []string{"", "body"} {
		resp, err := http.Post(srv.URL, "", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if got := outcomes(t, c); !maps.Equal(got, map[string]int64{"418": 2}) {
		t.Errorf("counted %v", got)
	}
}

// closeNotifier is the same interface as http.CloseNotifier. Linters report uses of http.CloseNotifier, because it is
// deprecated.
type closeNotifier interface{ CloseNotify() <-chan bool }

// For each combination of optional interfaces, the wrapping writer has the same combination, and each of its methods
// calls the wrapped writer.
func TestAllCombinationsOfInterfaces(t *testing.T) {
	type of struct{ flush, hijack, notify, push, read bool }
	detect := func(w http.ResponseWriter) (x of) {
		_, x.flush = w.(http.Flusher)
		_, x.hijack = w.(http.Hijacker)
		_, x.notify = w.(closeNotifier)
		_, x.push = w.(http.Pusher)
		_, x.read = w.(io.ReaderFrom)
		return x
	}
	seen := map[of]bool{}
	for _, w := range combinations(everything{}) {
		want := detect(w)
		seen[want] = true
		h := func(w http.ResponseWriter, r *http.Request) {
			if got := detect(w); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if x, ok := w.(http.Hijacker); ok {
				_, _, err := x.Hijack()
				wantReached(t, "Hijack", err)
			}
			if x, ok := w.(http.Pusher); ok {
				wantReached(t, "Push", x.Push("/", nil))
			}
			if x, ok := w.(io.ReaderFrom); ok {
				_, err := x.ReadFrom(r.Body)
				wantReached(t, "ReadFrom", err)
			}
			if x, ok := w.(closeNotifier); ok && x.CloseNotify() == nil {
				t.Error("CloseNotify does not reach the writer")
			}
			if x, ok := w.(interface{ FlushError() error }); ok && want.flush {
				wantReached(t, "FlushError", x.FlushError())
			}
		}
		httpstat.Route(newCollector(t), "all", http.HandlerFunc(h)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	}
	if len(seen) != 32 {
		t.Errorf("%d combinations", len(seen))
	}
}

func wantReached(t *testing.T, method string, err error) {
	t.Helper()
	if err != errReached {
		t.Errorf("%s does not reach the writer: %v", method, err)
	}
}

// If the function of the option Exception selects status 200, a gRPC call with any code is an exception. Servers and
// clients still count it with its gRPC code.
func TestGRPCCodeOfAStatusThatIsAnException(t *testing.T) {
	always := httpstat.Exception(func(int) bool { return true })
	for _, field := range []string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		server, client := newCollector(t), newCollector(t)
		srv := httptest.NewServer(httpstat.Route(server, "all", http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) {
				if field != "Grpc-Status" {
					_ = http.NewResponseController(w).Flush() // without a flush there are no trailers
				}
				w.Header().Set(field, "5")
			},
		), always))
		all := func(*http.Request) string { return "all" }
		hc := http.Client{Transport: httpstat.Transport(client, all, nil, always)}
		resp, err := hc.Post(srv.URL, "application/grpc", strings.NewReader("message"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		srv.Close()
		for name, c := range map[string]*collector.Collector{"server": server, "client": client} {
			if got, want := outcomes(t, c), map[string]int64{"NotFound": 1, "exceptions": 1}; !maps.Equal(got, want) {
				t.Errorf("%s, field %s: %v, want %v", name, field, got, want)
			}
		}
	}
}
