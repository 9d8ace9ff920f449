package top

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/prom"
)

// service is a process that counts, with the clock in its hand.
type service struct {
	*collector.Collector
	now     time.Time
	seconds *prom.Seconds
	mux     *http.ServeMux
}

func newService(t testing.TB) *service {
	t.Helper()
	s := &service{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), mux: http.NewServeMux()}
	var err error
	if s.Collector, err = collector.New(collector.Options{Now: func() time.Time { return s.now }}); err != nil {
		t.Fatal(err)
	}
	if s.seconds, err = prom.NewSeconds(s.Collector, prom.SecondsOptions{}); err != nil {
		t.Fatal(err)
	}
	s.mux.Handle("/metrics/seconds", s.seconds)
	return s
}

// calls makes n calls that take so long, and ends with the second.
func (s *service) calls(resource string, n int, rt time.Duration) {
	r := s.Resource(resource)
	entries := make([]collector.Entry, n)
	for i := range entries {
		entries[i] = r.Enter()
	}
	s.now = s.now.Add(rt)
	for i := range entries {
		entries[i].Exit(nil)
	}
	s.end()
}

// end ends the second.
func (s *service) end() { s.now = s.now.Truncate(time.Second).Add(time.Second) }

func (s *service) serve(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(s.mux)
	t.Cleanup(server.Close)
	return server.URL
}

func newEndpoint(t testing.TB, url string) *Endpoint {
	t.Helper()
	e, err := NewEndpoint(url, config.DefaultHTTPClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.client.CloseIdleConnections)
	return e
}

func newReader(t testing.TB, url string) *reader {
	t.Helper()
	return &reader{endpoint: newEndpoint(t, url), minute: every}
}

func once(t *testing.T, url string, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Once(t.Context(), &b, newEndpoint(t, url), o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What was recorded is what is written.
func TestOnce(t *testing.T) {
	s := newService(t)
	base := s.serve(t)
	if got, want := once(t, base, Options{}), "second\tpass\tblock\texception\trt_mean_ms\trt_p99_ms\tin_flight\tpeak\tkind\tresource\n"; got != want {
		t.Errorf("nothing was counted, and there is\n%q", got)
	}
	s.calls("a", 7, 10*time.Millisecond) // the peak of the minute
	s.Resource("b\t\x1b[2J").Block("")
	open := s.Resource("c").Enter()
	_ = s.Resource("a").Do(func() error { return errors.New("x") })
	s.calls("a", 3, 2500*time.Microsecond)
	at := s.now.Unix() - 1
	row := func(f string) string { return fmt.Sprintf("%d\t%s\n", at, strings.ReplaceAll(f, " ", "\t")) }
	head := "second\tpass\tblock\texception\trt_mean_ms\trt_p99_ms\tin_flight\tpeak\tkind\tresource\n"
	sum := row(`5 1 1 1.875 - 1 - sum `) // nothing is inbound
	a, b, c := row(`4 0 1 1.875 2.5 0 7 resource a`), row(`0 1 0 - - 0 0 resource b\t\x1b[2J`), row(`1 0 0 - - 1 1 resource c`)
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{}, head + sum + a + c + b},
		{Options{Sort: "block"}, head + sum + b + a + c},
		{Options{Sort: "resource", Filter: "A"}, head + sum + a},
		{Options{Sort: "in_flight", Filter: "C"}, head + sum + c},
	} {
		if got := once(t, base, tc.o); got != tc.want {
			t.Errorf("%+v: got\n%swant\n%s", tc.o, got, tc.want)
		}
	}
	open.Exit(nil)
	if err := Once(t.Context(), io.Discard, newEndpoint(t, base), Options{Sort: "size"}); err == nil || !strings.Contains(err.Error(), "p99") {
		t.Error(err)
	}
}

// A second is read once, however often it is asked for; what was missed is read later, and a scraper with a cursor of the
// same address gets all the same.
func TestReaderGetsEverySecond(t *testing.T) {
	s := newService(t)
	r := newReader(t, s.serve(t))
	scraped := func() int {
		resp, err := http.Get(r.endpoint.String() + "/metrics/seconds?cursor=prometheus&metric=persecond_pass")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "persecond_pass{")
	}
	b := newBoard()
	read := func() answer {
		t.Helper()
		a := r.read(t.Context())
		if a.err != nil || a.restarted {
			t.Fatalf("%+v", a)
		}
		b.add(a.samples, a.newest)
		return a
	}
	for range 3 {
		s.calls("a", 5, time.Millisecond)
	}
	first := s.now.Unix() - 3
	if n := scraped(); n != 3 {
		t.Errorf("the scraper got %d seconds", n)
	}
	for range metrics { // the minute comes metric by metric
		if a := read(); len(a.samples) != int(metrics)+2 {
			t.Errorf("%d samples", len(a.samples))
		}
	}
	if a := read(); len(a.samples) != int(metrics) {
		t.Errorf("%d samples without a new second", len(a.samples))
	}
	for n := range 8 { // gaps of 0 to 7 seconds
		for i := range n + 1 {
			s.calls("a", 10*n+i, time.Millisecond)
		}
		if a := read(); a.newest != s.now.Unix()-1 {
			t.Errorf("newest is %d, want %d", a.newest, s.now.Unix()-1)
		}
		if n > few {
			for range metrics - 1 {
				read()
			}
		}
		for _, x := range b.rows["a"].history(s.now.Unix()-1, n+1) {
			if !(x.values[pass] >= 0 && x.values[inFlight] == 0) {
				t.Errorf("after a gap of %d seconds: %+v", n, x)
			}
		}
	}
	s.calls("a", 1, time.Millisecond)
	read()
	var got []float64
	for _, x := range b.rows["a"].history(s.now.Unix()-1, int(s.now.Unix()-first)) {
		got = append(got, x.values[pass])
		if x.values[complete] != x.values[pass] {
			t.Errorf("%+v", x)
		}
	}
	want := []float64{5, 5, 5}
	for n := range 8 {
		for i := range n + 1 {
			want = append(want, float64(10*n+i))
		}
	}
	if want = append(want, 1); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if n := scraped(); n != len(want)-3 {
		t.Errorf("the scraper got %d seconds, want %d", n, len(want)-3)
	}
}

// An answer of a second is small, also of many resources.
func TestSizeOfAnswers(t *testing.T) {
	s := newService(t)
	for i := range 500 {
		s.Resource(fmt.Sprintf("GET /api/v1/customers/{id}/orders/%d", i)).Enter()
	}
	s.end()
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		s.mux.ServeHTTP(rec, r)
		sent += rec.Body.Len()
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		_, _ = w.Write(rec.Body.Bytes())
	}))
	defer server.Close()
	r := newReader(t, server.URL)
	if a := r.read(t.Context()); a.err != nil {
		t.Fatal(a.err)
	}
	for range metrics - 1 {
		r.read(t.Context()) // the rest of the minute
	}
	for range 3 {
		for i := range 500 {
			e := s.Resource(fmt.Sprintf("GET /api/v1/customers/{id}/orders/%d", i)).Enter()
			s.now = s.now.Add(time.Duration(i) * time.Microsecond) // no two take as long
			e.Exit(nil)
		}
		s.end()
		sent = 0
		if a := r.read(t.Context()); a.err != nil || len(a.samples) != 500*int(metrics) {
			t.Fatalf("%d samples, %v", len(a.samples), a.err)
		}
		t.Logf("%d bytes", sent)
		if sent > 40_000 {
			t.Errorf("%d bytes", sent)
		}
	}
}

// Another process at the same address is noticed, whether it was missed or not.
func TestRestart(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	before := newService(t)
	server := &http.Server{Handler: before.mux}
	go server.Serve(listener)
	before.calls("a", 1, time.Millisecond)
	r := newReader(t, "http://"+address)
	if a := r.read(t.Context()); a.err != nil || a.restarted {
		t.Fatalf("%+v", a)
	}
	// The same process behind a new connection is none.
	r.endpoint.client.CloseIdleConnections()
	before.calls("a", 1, time.Millisecond)
	if a := r.read(t.Context()); a.err != nil || a.restarted {
		t.Fatalf("%+v", a)
	}
	server.Close()
	if a := r.read(t.Context()); a.err == nil || !strings.Contains(a.err.Error(), "connection refused") {
		t.Fatalf("%+v", a)
	}
	after := newService(t)
	after.now = before.now
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	server = &http.Server{Handler: after.mux}
	go server.Serve(listener)
	defer server.Close()
	after.calls("a", 1, time.Millisecond)
	if a := r.read(t.Context()); a.err != nil || !a.restarted {
		t.Fatalf("%+v", a)
	}
	after.calls("a", 1, time.Millisecond)
	if a := r.read(t.Context()); a.err != nil || a.restarted {
		t.Fatalf("%+v", a)
	}
}

// Where the pages are, and where they are not.
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
	refusal := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no\x1b[2J entry", http.StatusForbidden) })
	type pages = map[string]http.Handler
	for _, tc := range []struct {
		pages pages
		path  string
		want  string // of the error, or the page
	}{
		{pages{"/metrics/seconds": s.seconds, "/metrics": metrics}, "", "/metrics/seconds"},
		{pages{"/metrics/seconds": s.seconds, "/metrics": metrics}, "/", "/metrics/seconds"},
		{pages{"/metrics/seconds": s.seconds, "/metrics": metrics}, "/metrics", "/metrics/seconds"},
		{pages{"/metrics/seconds": s.seconds}, "/metrics", "/metrics/seconds"},
		{pages{"/a/b": s.seconds}, "/a/b", "/a/b"},
		{pages{"/metrics": metrics}, "", "/metrics has metrics of windowstat, but no seconds of resources\n"},
		{pages{"/metrics": metrics}, "", "/metrics/seconds: 404 Not Found: 404 page not found\n"},
		{pages{"/metrics": metrics}, "", "\n" + errNoSeconds.Error()},
		{pages{"/": metrics}, "", "/metrics/seconds has metrics of windowstat, but no seconds of resources\n"}, // the handler alone, whatever the path
		{pages{"/a": metrics}, "/a", "/a has metrics of windowstat, but no seconds of resources\n"},
		{pages{"/a": metrics}, "", "404 Not Found: 404 page not found\n" + errNoSeconds.Error()},
		{pages{"/": html}, "", `is "text/html", and no page of metrics`},
		{pages{"/": refusal}, "", `403 Forbidden: no\x1b[2J entry`},
		{pages{"/": text("up 1\n")}, "", "has metrics, but none of windowstat\n"},
		{pages{"/": text("up 1\n")}, "", "\n" + errNoSeconds.Error()},
		{pages{"/": text("windowstat_overflow_events_total 0\nwindowstat_persecond_pass{resource=\"a\"} 7 1767323045000\n")}, "", "/metrics/seconds"},
		{pages{"/": text("a 1 \x1b[2J\n")}, "", `not in Prometheus's text format: text format parsing error in line 1: expected integer as timestamp, got "\\x1b[2J"`},
		{pages{"/": text(`windowstat_persecond_pass{resource="` + strings.Repeat("x", 201) + `"} 1 1000` + "\n")}, "", "a name of 201 bytes"},
	} {
		mux := http.NewServeMux()
		for path, h := range tc.pages {
			mux.Handle(path, h)
		}
		server := httptest.NewServer(mux)
		r := newReader(t, server.URL+tc.path)
		a := r.read(t.Context())
		got := fmt.Sprint(a.err)
		if a.err == nil {
			if got = r.page.Path; len(a.samples) == 0 {
				t.Errorf("%v %s: no samples", tc.pages, tc.path)
			}
		}
		if a.err == nil && got != tc.want || !strings.Contains(got, tc.want) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: got %s, want %s", tc.path, got, tc.want)
		}
		server.Close()
	}
}

// An endpoint that sends without end is not read without end, nor one whose short lines take up far more than they have
// bytes. An answer that breaks off is not taken for one in a wrong format.
func TestTooLarge(t *testing.T) {
	usual := requestTimeout
	requestTimeout = time.Hour
	defer func() { requestTimeout = usual }()
	for _, tc := range []struct {
		line  string
		times int
		want  string
	}{
		{"# a " + strings.Repeat("x", 1000) + "\n", math.MaxInt, "larger than 80 MiB"}, // lines that are read quickly
		{"\n", math.MaxInt, "more than 1000000 lines"},
		{"a", math.MaxInt, "a line of more than 64 KiB"},
		{"a 1\n", 5, "the answer broke off: unexpected EOF"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			part := []byte(strings.Repeat(tc.line, 1000))
			for range tc.times {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
			panic(http.ErrAbortHandler)
		}))
		if a := newReader(t, server.URL).read(t.Context()); a.err == nil || !strings.Contains(a.err.Error(), tc.want) {
			t.Errorf("%.5q: %v", tc.line, a.err)
		}
		server.Close()
	}
}

// A page that came without types, as some proxies and servers pass it on, has the same numbers.
func TestPageWithoutTypes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "windowstat_persecond_pass{resource=\"a\"} 7 1767323045000\n")
	}))
	defer server.Close()
	if got := once(t, server.URL, Options{}); !strings.Contains(got, "\t7\t-\t") {
		t.Errorf("it is shown as\n%s", got)
	}
}

func TestURLs(t *testing.T) {
	for raw, want := range map[string]string{
		"http://127.0.0.1:9719":     "",
		"https://[::1]:1/a/b":       "",
		"http://host":               "",
		"127.0.0.1:9719":            "is not http://host:port",
		"localhost:9719":            "is not http://host:port",
		"ftp://x":                   "is not http://host:port",
		"http://":                   "is not http://host:port",
		"http://:9719":              "is not http://host:port",
		"http://x?":                 "is not http://host:port",
		"http://x/?cursor=a":        "is not http://host:port",
		"http://x#a":                "is not http://host:port",
		"http://x:99999":            `port "99999"`,
		"http://user:secret@x:9719": "put it into the file of --http.config.file",
		"http://%zz":                "invalid URL escape",
		"http://a b":                "invalid character",
		"http://x/\x1b[2J":          "invalid control character",
	} {
		_, err := NewEndpoint(raw, config.DefaultHTTPClientConfig)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) || strings.Contains(got, "secret") || strings.Contains(got, "\x1b") {
			t.Errorf("%q: %v", raw, err)
		}
	}
	// Both at once.
	_, err := NewEndpoint("x", config.HTTPClientConfig{TLSConfig: config.TLSConfig{CAFile: "/nowhere/ca.pem"}})
	if got := fmt.Sprint(err); !strings.Contains(got, "is not http://host:port") || !strings.Contains(got, "ca.pem") {
		t.Error(got)
	}
}

// Every metric that is asked for is one that there is, of the column that is shown.
func TestNamesOfMetrics(t *testing.T) {
	known := map[string]exporter.Metric{}
	for _, m := range exporter.Catalogue() {
		known[m.Name] = m
	}
	for m, column := range shown {
		for i, name := range onPage[m].list() {
			x, prefix := known[name], []string{"persecond_", "persecond_inbound_"}[i]
			if !x.Seconds || len(x.Labels) != 1-i || x.Name != prefix+column && x.Name != prefix+column+"_"+x.Unit {
				t.Errorf("%s is read from %q", column, name)
			}
		}
	}
	if known[overflow].Name == "" {
		t.Errorf("there is no %q", overflow)
	}
}
