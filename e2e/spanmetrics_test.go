//go:build fleet

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

const spanmetricsConfig = `
receivers: {otlp: {protocols: {http: {endpoint: '%s'}}}}
connectors: {spanmetrics: {aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA, metrics_flush_interval: 1s}}
%s  otlphttp/sink: {endpoint: '%s', compression: none}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [spanmetrics%s]}
    metrics: {receivers: [spanmetrics], exporters: [otlphttp/sink]}
`

// TestSpanmetrics sends the same spans to windowstat otlp and to an OpenTelemetry Collector with spanmetrics: 30,000
// spans a second that arrive 3, 8 and 13 seconds after their end. It logs the table of docs/otlp.md.
func TestSpanmetrics(t *testing.T) {
	load := func() *spanLoad {
		return &spanLoad{
			rate: 30_000, seconds: 15,
			delays: []time.Duration{3 * time.Second, 8 * time.Second, 13 * time.Second},
		}
	}
	o := newOTLPReceiver(t)
	o.start(t, buildWindowstat(t), "--service=shop")
	ours := load()
	ours.run(t, "http://"+o.http+"/v1/traces")
	page := o.sealed(t, ours.sent)
	spanmetricsRow(t, "windowstat otlp", o.process.Process.Pid, ours, readSeconds(t, page, "complete"))

	sink := newMetricsSink(t)
	addr, pid := startSpanmetrics(t, sink.url, "")
	theirs := load()
	theirs.run(t, "http://"+addr+"/v1/traces")
	time.Sleep(5 * time.Second)
	spanmetricsRow(t, "spanmetrics", pid, theirs, sink.seconds())
}

// TestSpansForwardedByACollector has the Collector forward spans with the configuration of the documentation.
func TestSpansForwardedByACollector(t *testing.T) {
	o := newOTLPReceiver(t)
	o.start(t, buildWindowstat(t), "--service=shop")
	addr, _ := startSpanmetrics(t, newMetricsSink(t).url,
		strings.ReplaceAll(documented(t, "otlp.md", "otlphttp/windowstat", ""), "127.0.0.1:4318", o.http))
	l := &spanLoad{rate: 1000, seconds: 5, delays: []time.Duration{time.Second}}
	l.run(t, "http://"+addr+"/v1/traces")
	compareSeconds(t, "through a Collector", readSeconds(t, o.sealed(t, l.sent), "pass", "complete"), l.sent)
}

// spanmetricsRow logs one row of the table.
func spanmetricsRow(t *testing.T, what string, pid int, l *spanLoad, got countsBySecond) {
	t.Helper()
	used, memory := processorTime(t, pid)
	seconds := func(of countsBySecond) map[string]float64 {
		all := map[string]float64{}
		for key, n := range of {
			if _, rest, _ := strings.Cut(key, "|"); strings.HasPrefix(rest, "complete|") {
				all[rest] += n
			}
		}
		return all
	}
	wrong, counted := 0, 0.0
	sent, found := seconds(l.sent), seconds(got)
	for second := range union(sent, found) {
		if sent[second] != found[second] {
			wrong++
		}
		counted += found[second]
	}
	t.Logf("| %s | %.1f µs | %s | %.0f of %d | %d of %d |", what, float64(used.Microseconds())/float64(l.n), memory,
		counted, l.n, wrong, len(union(sent, found)))
}

// startSpanmetrics starts a Collector that counts spans, and that forwards them with a configuration of exporters
// unless the configuration is empty.
func startSpanmetrics(t *testing.T, sink, exporters string) (addr string, pid int) {
	t.Helper()
	addr = freeAddress(t)
	also := ", otlphttp/windowstat"
	if exporters == "" {
		exporters, also = "exporters:\n", ""
	}
	path := t.TempDir() + "/config.yml"
	if err := os.WriteFile(path, fmt.Appendf(nil, spanmetricsConfig, addr, exporters, sink, also), 0o600); err != nil {
		t.Fatal(err)
	}
	return addr, launch(t, addr, "", spanmetrics.path(t), "--config=file:"+path).Process.Pid
}

// metricsSink is a receiver of deltas. It adds each delta to the second of its start time.
type metricsSink struct {
	url string

	mu     sync.Mutex
	counts countsBySecond
}

func newMetricsSink(t *testing.T) *metricsSink {
	s := &metricsSink{counts: countsBySecond{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *metricsSink) seconds() countsBySecond {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// ServeHTTP implements http.Handler.
func (s *metricsSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var data metricspb.MetricsData // has the same fields as a request
	if err := proto.Unmarshal(body, &data); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range data.ResourceMetrics {
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				if m.GetSum() == nil || !strings.HasSuffix(m.Name, "calls") {
					continue
				}
				for _, p := range m.GetSum().DataPoints {
					name := ""
					for _, a := range p.Attributes {
						if a.Key == "span.name" {
							name = a.Value.GetStringValue()
						}
					}
					s.counts[fmt.Sprint(name, "|complete|", p.StartTimeUnixNano/1e9)] += float64(p.GetAsInt())
				}
			}
		}
	}
}
