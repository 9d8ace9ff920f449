package e2e

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
)

// A service is what the servers scrape: the SDK under load, its pages, and its metric log, which is the truth that the
// servers' samples are compared with. Both come from the same sealed seconds by different ways out.
type service struct {
	stats   *collector.Collector
	log     *metriclog.Writer
	seconds *prom.Seconds
	live    *live.Page
	pages   http.Handler

	mu    sync.Mutex
	asked map[string]time.Time // by server, when it last had a page
}

// Paths of the service. The last two are the page of seconds too, with outages.
const (
	metricsPath = "/metrics"
	livePath    = "/live/"
	secondsPath = "/metrics/seconds"
	flakyPath   = "/flaky/metrics/seconds"
	tornPath    = "/torn/metrics/seconds"
)

// newService goes on with the metric log in a directory, and with the positions of the readers there.
func newService(dir string) (*service, error) {
	s := &service{asked: map[string]time.Time{}}
	log := metriclog.Options{Dir: dir, App: "e2e", Logger: slog.New(slog.DiscardHandler)}
	last, err := metriclog.Last(log)
	if err != nil {
		return nil, err
	}
	if s.stats, err = collector.New(collector.Options{After: last}); err != nil {
		return nil, err
	}
	if s.log, err = metriclog.New(s.stats, log); err != nil {
		return nil, err
	}
	if s.seconds, err = prom.NewSeconds(s.stats, prom.SecondsOptions{Log: s.log}); err != nil {
		return nil, err
	}
	metrics, err := prom.Handler(s.stats, prom.Options{Sources: []exporter.Source{s.seconds, s.log}})
	if err != nil {
		return nil, err
	}
	if s.live, err = live.New(s.stats, live.Options{}); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(metricsPath, metrics)
	mux.Handle(livePath, s.live)
	mux.Handle(secondsPath, s.seconds)
	mux.Handle(flakyPath, flaky(s.seconds))
	mux.Handle(tornPath, torn(s.seconds))
	s.pages = s.note(mux)
	return s, nil
}

// startService starts one in the test's process, and with it the metric log. The function that is returned ends the log,
// with its last second.
func startService(t *testing.T, listeners ...net.Listener) (*service, func() error) {
	t.Helper()
	s, err := newService(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range listeners {
		serve(t, s.pages, s.seconds.Watch(l))
	}
	ctx, cancel := context.WithCancel(context.Background())
	logged := make(chan error, 1)
	go func() { logged <- s.log.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-logged
	})
	t.Cleanup(func() { _ = stop() })
	return s, stop
}

// serve serves a page until the test ends, or the server that it returns is closed.
func serve(t *testing.T, page http.Handler, l net.Listener) *http.Server {
	t.Helper()
	server := &http.Server{Handler: page, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// note remembers when each server was answered; its jobs say which server they are from.
func (s *service) note(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, _, _ := strings.Cut(r.URL.Query().Get("cursor"), ":")
		touch := func() {
			s.mu.Lock()
			s.asked[server] = time.Now()
			s.mu.Unlock()
		}
		touch()
		defer touch()
		pages.ServeHTTP(w, r)
	})
}

// quiet waits until a server is between two scrapes.
func (s *service) quiet(server string) {
	for {
		s.mu.Lock()
		since := time.Since(s.asked[server])
		s.mu.Unlock()
		if since > 300*time.Millisecond {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
