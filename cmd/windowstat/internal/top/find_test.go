package top

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/prom"
)

// The paths of the per-second page, and the errors for other paths.
func TestWhereThePageIs(t *testing.T) {
	s := newService(t)
	s.calls("a", 1, time.Millisecond)
	metrics, err := prom.Handler(s.Collector, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprint(w, body)
		})
	}
	html := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	refusal := http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no\x1b[2J entry", http.StatusForbidden) },
	)
	type pages = map[string]http.Handler
	for _, tc := range []struct {
		pages pages
		path  string
		want  string // part of the error, or the path of the page
	}{
		{pages{"/metrics/seconds": s.seconds, "/metrics": metrics}, "", "/metrics/seconds"},
		{pages{"/metrics/seconds": s.seconds, "/metrics": metrics}, "/", "/metrics/seconds"},
		{pages{"/metrics/seconds": s.seconds, "/metrics": metrics}, "/metrics", "/metrics/seconds"},
		{pages{"/metrics/seconds": s.seconds}, "/metrics", "/metrics/seconds"},
		{pages{"/a/b/seconds": s.seconds}, "/a/b", "/a/b/seconds"},
		{pages{"/a/b/seconds": s.seconds}, "/a/b/seconds/", "/a/b/seconds"},
		{pages{"/metrics": metrics}, "", "/metrics/seconds: 404 Not Found\n" + errNoSeconds.Error()},
		{pages{"/metrics": metrics}, "/metrics", "/metrics/seconds: 404 Not Found\n" + errNoSeconds.Error()},
		// The handler serves the page under any path.
		{pages{"/": metrics}, "", "/metrics/seconds has metrics, but no seconds\n"},
		{pages{"/a": metrics}, "", "404 Not Found\n" + errNoSeconds.Error()},
		{pages{"/": html}, "", `is "text/html", and not "text/plain"`},
		{pages{"/": refusal}, "", `403 Forbidden: no\x1b[2J entry`},
		{pages{"/": text("up 1\n")}, "", "has metrics, but no seconds\n" + errNoSeconds.Error()},
		{
			pages{
				"/": text("windowstat_overflow_events_total 0\nwindowstat_persecond_run 1 1767323045000\n" +
					"windowstat_persecond_pass{resource=\"a\"} 7 1767323045000\n"),
			}, "", "/metrics/seconds",
		},
		{
			pages{"/": text("a 1 \x1b[2J\n")},
			"",
			`not in Prometheus's text format: text format parsing error in line 1: expected integer as timestamp, ` +
				`got "…"`,
		},
		{pages{"/": text("windowstat_persecond_run 1 1000\n" + `windowstat_persecond_pass{resource="` +
			strings.Repeat("x", 201) + `"} 1 1000` + "\n")}, "", "a name of 201 bytes"},
	} {
		mux := http.NewServeMux()
		for path, h := range tc.pages {
			mux.Handle(path, h)
		}
		server := httptest.NewServer(mux)
		r := newReader(t, server.URL+tc.path)
		a := r.read(t.Context(), inbound)
		got := fmt.Sprint(a.err)
		if a.err == nil {
			if got = r.endpoint.page.Path; len(a.samples) == 0 {
				t.Errorf("%v %s: no samples", tc.pages, tc.path)
			}
		}
		if a.err == nil && got != tc.want || !strings.Contains(got, tc.want) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: got %s, want %s", tc.path, got, tc.want)
		}
		server.Close()
	}
}
