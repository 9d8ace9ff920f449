package exporter_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/exporter/verify"
)

// everything returns an Exporter with all its parts, for a receiver and a database that only need to exist if it runs.
func everything(t *testing.T, receiver, database string) *exporter.Exporter {
	t.Helper()
	dir := t.TempDir()
	limits := filepath.Join(dir, "limits.yml")
	const rules = "limits: [{resource: a, qps: 1, concurrency: 2}, {resource: a, qps: 0, dry_run: true}]"
	if err := os.WriteFile(limits, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := exporter.New(exporter.Options{
		App: "shop", Log: metriclog.Options{Dir: dir}, LimitsFile: limits, Logger: slog.New(slog.DiscardHandler),
		Sampler: sampler.Options{Gatherer: prometheus.NewRegistry()},
		Push:    []push.Options{{URL: receiver}, {Format: push.VictoriaMetrics, URL: receiver + "/import"}},
		Verify: []verify.Options{{
			URL: database, Labels: map[string]string{"job": "shop"},
			Delay: time.Second, Every: time.Second, Window: time.Minute,
		}},
		Collector: collector.Options{ExceptionClass: func(error) string { return "any" }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

// described returns all documented metrics: the metrics of the catalogue, and the self-metrics of the parts.
func described(t *testing.T) []exporter.Metric {
	t.Helper()
	all := exporter.Catalogue()
	for _, m := range everything(t, "http://localhost", "http://localhost").Collector.Metrics() {
		if slices.ContainsFunc(all, func(x exporter.Metric) bool { return x.Name == m.Name }) {
			continue // both pages or both pushes have the metric
		}
		kind := "gauge"
		if strings.HasSuffix(m.Name, "_total") {
			kind = "counter"
		}
		all = append(all, exporter.Metric{Name: m.Name, Type: kind, Unit: m.Unit, Help: m.Help, Labels: m.Labels})
	}
	return all
}
