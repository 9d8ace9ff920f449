package top

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// service is a process with statistics and a fake clock.
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

// calls records n calls with the response time rt, and ends the second.
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
	e, err := NewEndpoint(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.client.CloseIdleConnections)
	return e
}

func newReader(t testing.TB, url string) *target {
	t.Helper()
	return newTarget(newEndpoint(t, url), maxKept)
}

// newUI returns a ui for the service at a URL.
func newUI(t testing.TB, url string) *ui {
	t.Helper()
	return &ui{targets: []*target{newTarget(newEndpoint(t, url), maxKept)}, order: order{column: 1}}
}

// read reads all targets until they have the past, too.
func (u *ui) read(t testing.TB, now time.Time) {
	t.Helper()
	for range metrics + 1 {
		for _, x := range u.targets {
			if x.take(x.read(t.Context(), inbound), now); x.state.err != nil {
				t.Fatal(x.state.err)
			}
		}
	}
}
