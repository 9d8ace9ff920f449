package e2e

import (
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
)

// A service is the target of the servers: the SDK under load, its pages, and its metric log. The tests compare the
// samples of the servers with the metric log, the truth. Both come from the same sealed seconds through different
// exporters.
type service struct {
	out     *exporter.Exporter
	stats   *collector.Collector
	log     *metriclog.Writer
	seconds *prom.Seconds
	pages   http.Handler
}

// Paths of the service. The last two are also the per-second endpoint, with outages.
const (
	metricsPath = "/metrics"
	livePath    = "/live/"
	secondsPath = "/metrics/seconds"
	flakyPath   = "/flaky/metrics/seconds"
	tornPath    = "/torn/metrics/seconds"
)

// newService continues the metric log in a directory, and the positions of the scrapers there.
func newService(dir string, pushes []push.Options) (*service, error) {
	x, err := exporter.New(exporter.Options{
		App: "e2e", Log: metriclog.Options{Dir: dir}, Push: pushes, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	s := &service{out: x, stats: x.Collector, log: x.Log, seconds: x.Seconds}
	mux := http.NewServeMux()
	mux.Handle(metricsPath, x.Metrics)
	mux.Handle(livePath, x.Live)
	mux.Handle(secondsPath, x.Seconds)
	mux.Handle(flakyPath, flaky(x.Seconds))
	mux.Handle(tornPath, torn(x.Seconds))
	s.pages = mux
	return s, nil
}

// startService starts a service in the test's process, with its metric log. The returned function ends the log,
// including its last second.
func startService(t *testing.T, listeners ...net.Listener) (*service, func() error) {
	t.Helper()
	s, err := newService(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range listeners {
		serve(t, s.pages, l, s.out.ConnState)
	}
	stop := s.out.Start()
	t.Cleanup(func() { _ = stop() })
	return s, stop
}

// secondMetrics is the number of metrics that the per-second page has for each resource.
func secondMetrics() (n int) {
	for _, m := range exporter.Catalogue() {
		if m.Seconds && m.Type == "gauge" {
			n++
		}
	}
	return n
}

// serve serves a page until the test ends or the returned server is closed. A page with cursors has a hook.
func serve(t *testing.T, page http.Handler, l net.Listener, hook ...func(net.Conn, http.ConnState)) *http.Server {
	t.Helper()
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second} // browsers connect ahead
	if len(hook) > 0 {
		server.ConnState = hook[0]
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return server
}
