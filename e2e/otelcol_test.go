//go:build fleet

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
)

var (
	otelcol     = program{"otelcol-scraper-0.165.0", buildOtelcol("scraper")}
	spanmetrics = program{"otelcol-spanmetrics-0.165.0", buildOtelcol("spanmetrics")}
)

// buildOtelcol builds one of the Collectors in the module consumers.
func buildOtelcol(name string) func(ctx context.Context, _, executable string) error {
	return func(ctx context.Context, _, executable string) error {
		return run(ctx, "consumers", "go", "build", "-tags", withoutDiscovery, "-buildvcs=false",
			"-o", executable, "./"+name)
	}
}

// TestOpenTelemetryCollector runs an OpenTelemetry Collector that scrapes windowstat and forwards to a Prometheus by
// remote write. The Collector takes one second of a response with several seconds. With the configuration of the
// documentation, it scrapes an endpoint whose responses have one second, and takes every second, also after an outage.
func TestOpenTelemetryCollector(t *testing.T) {
	t.Parallel()
	p := newConsumed(t)
	to := startServer(t, "prometheus-3", prometheus3)
	endpoint := func(o prom.SecondsOptions, handler func(http.Handler) http.Handler) (addr string) {
		seconds, err := prom.NewSeconds(p.stats, o)
		if err != nil {
			t.Fatal(err)
		}
		l := listen(t, "127.0.0.1:0")
		serve(t, handler(seconds), l, seconds.ConnState)
		return l.Addr().String()
	}
	one := endpoint(prom.SecondsOptions{MaxSamples: 1}, flaky)
	several := endpoint(prom.SecondsOptions{}, func(page http.Handler) http.Handler { return page })
	config := strings.ReplaceAll(documented(t, "seconds.md", "receivers:\n  prometheus:", one),
		"http://receiver:8428/api/v1/write", writeTo(to))
	startOtelcol(t, config)
	startOtelcol(t, strings.NewReplacer(one, several, "500ms", "5s").Replace(config))

	begin, end := p.consume(func() {})
	labels := func(addr string) string { return fmt.Sprintf(`job="shop-seconds",instance=%q`, addr) }
	t.Logf("%d samples", p.check(t, to, labels(one), begin, end, time.Now().Add(catchUp)))
	total, arrived := 0, 0
	for _, x := range to.query(t, "windowstat_persecond_pass{"+labels(several)+"}[10m]") {
		total += consumedSeconds + 30
		arrived += len(x.Values)
	}
	t.Logf("of responses with five seconds, %d samples of %d", arrived, total)
	if arrived == 0 || arrived > total/3 {
		t.Error("it should have taken one second of five")
	}
}

// TestOpenTelemetryCollectorPushedTo pushes by OTLP to a Collector that forwards to a Prometheus by remote write. Two
// of three requests fail, before or after the Collector has taken them. Prometheus has each second of each resource
// once, and the sums.
func TestOpenTelemetryCollectorPushedTo(t *testing.T) {
	t.Parallel()
	p := newConsumed(t)
	to := startServer(t, "prometheus-3", prometheus3)
	collector := &server{name: "otelcol", addr: freeAddress(t)}
	startOtelcol(t,
		strings.NewReplacer("http://receiver:8428/api/v1/write", writeTo(to), "0.0.0.0:4318", collector.addr).Replace(
			documented(t, "seconds.md", "receivers:\n  otlp:", "")))
	proxy := &weather{bad: stormy}
	w, err := push.New(p.stats, push.Options{
		Format: push.OTLP, URL: "http://" + through(t, collector, proxy).addr + "/v1/metrics",
		Labels: map[string]string{"job": "pushed", "instance": "e2e"}, Timeout: weatherTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := w.Start()
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	begin, end := p.consume(func() { proxy.clear.Store(true) })
	const labels = `job="pushed",instance="e2e"`
	t.Logf("%d samples", p.check(t, to, labels, begin, end, time.Now().Add(catchUp)))
	sum := 0
	for second := begin; second < end; second++ {
		sum += p.calls(0, second).pass
	}
	expression := fmt.Sprintf("sum(windowstat_persecond_pass_total{%s,resource=%q})", labels, p.resources[0])
	if got := to.valueAt(t, expression, float64(end)); got != float64(sum) {
		t.Errorf("the sum at the end is %v, want %d", got, sum)
	}
}

// startOtelcol starts a Collector and waits until it serves its own metrics.
func startOtelcol(t *testing.T, config string) {
	t.Helper()
	s := newServer(t, "otelcol", otelcol.path(t), false)
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	config += fmt.Sprintf(`
  telemetry:
    metrics: {readers: [{pull: {exporter: {prometheus: {host: '%s', port: %s}}}}]}
`, host, port)
	s.ready, s.args = metricsPath, []string{"--config=file:" + s.writeConfig(t, config)}
	s.start(t)
}
