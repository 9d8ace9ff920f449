package top

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A second is requested once, and missed seconds are requested later. A scraper at the same address with a cursor still
// receives every second.
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
	read := func() result {
		t.Helper()
		a := r.read(t.Context(), inbound)
		if a.err != nil {
			t.Fatalf("%+v", a)
		}
		r.take(a, s.now)
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
		if a := read(); len(a.samples) != int(metrics)+3 {
			t.Errorf("%d samples", len(a.samples))
		}
	}
	if a := read(); len(a.samples) != int(metrics) {
		t.Errorf("%d samples without a new second", len(a.samples))
	}
	for n := range 8 { // gap of 0 to 7 seconds
		for i := range n + 1 {
			s.calls("a", 10*n+i, time.Millisecond)
		}
		if a := read(); a.newest != s.now.Unix()-1 {
			t.Errorf("newest is %d, want %d", a.newest, s.now.Unix()-1)
		}
		if n > maxMissed {
			for range metrics - 1 {
				read()
			}
		}
		for at := s.now.Unix() - 1 - int64(n); at < s.now.Unix(); at++ {
			if x := newLine(key{name: "a"}, []*target{r}, at).values; !(x[pass] >= 0 && x[inFlight] >= 0) {
				t.Errorf("after a gap of %d seconds: %+v", n, x)
			}
		}
	}
	s.calls("a", 1, time.Millisecond)
	read()
	var got []float64
	for at := first; at < s.now.Unix(); at++ {
		x := newLine(key{name: "a"}, []*target{r}, at).values
		got = append(got, x[pass])
		if x[complete] != x[pass] {
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

// The response for a second is small, also with many resources.
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
	for range metrics { // the minute comes metric by metric
		a := r.read(t.Context(), inbound)
		if a.err != nil {
			t.Fatal(a.err)
		}
		r.take(a, s.now)
	}
	for range 3 {
		for i := range 500 {
			e := s.Resource(fmt.Sprintf("GET /api/v1/customers/{id}/orders/%d", i)).Enter()
			s.now = s.now.Add(time.Duration(i) * time.Microsecond) // each call has a different response time
			e.Exit(nil)
		}
		s.end()
		sent = 0
		a := r.read(t.Context(), inbound)
		if a.err != nil || len(a.samples) != 500*int(metrics) {
			t.Fatalf("%d samples, %v", len(a.samples), a.err)
		}
		r.take(a, s.now)
		t.Logf("%d bytes", sent)
		if sent > 40_000 {
			t.Errorf("%d bytes", sent)
		}
	}
}

// With thousands of resources the reader requests a minute, also if all resources are idle and a second has hardly more
// than their passes. The service refuses longer windows with so many resources.
func TestManyIdleResources(t *testing.T) {
	var idle strings.Builder
	idle.WriteString("windowstat_persecond_run 1 1767323045000\n")
	for i := range 5000 {
		fmt.Fprintf(&idle, "windowstat_persecond_pass{resource=\"%d\"} 0 1767323045000\n", i)
	}
	refused := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if window := r.FormValue("window"); window != "" && window != "1s" {
			refused++
			http.Error(w, window+" is too much", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, idle.String())
	}))
	defer server.Close()
	r := newReader(t, server.URL)
	if a := r.read(t.Context(), inbound); a.err != nil || len(a.samples) != 10000 || refused > 0 || r.window != minute {
		t.Errorf("%d samples, %d requests for a longer window, of %d s: %v", len(a.samples), refused, r.window, a.err)
	}
}

// A resource that is idle for more than a minute appears as idle, not as unknown. No second is requested twice.
func TestIdleIsZero(t *testing.T) {
	s := newService(t)
	r := newReader(t, s.serve(t))
	s.calls("a", 5, time.Millisecond)
	for second := range 100 {
		a := r.read(t.Context(), inbound)
		if a.err != nil {
			t.Fatalf("%+v", a)
		}
		r.take(a, s.now)
		if r.newest != s.now.Unix()-1 || second > 80 && len(a.samples) > 2 {
			t.Errorf(
				"%d seconds on: the newest is %d, want %d; %d samples",
				second,
				r.newest,
				s.now.Unix()-1,
				len(a.samples),
			)
		}
		s.end()
	}
	a := newLine(key{name: "a"}, []*target{r}, r.newest).values
	for m := range metrics {
		if m != rtP99 && a[m] != 0 {
			t.Errorf("%s is %v", onPage[m], a[m])
		}
	}
	s.calls("a", 7, time.Millisecond)
	again := r.read(t.Context(), inbound)
	r.take(again, s.now)
	if now := newLine(key{name: "a"}, []*target{r}, r.newest).values; now[pass] != 7 || now[complete] != 7 ||
		now[rtSum] <= 0 {
		t.Errorf("%+v", now)
	}
}
