package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/exporter/verify"
)

// described returns all metrics of a service: the metrics of the catalogue and the self-metrics of an Exporter's parts.
func described(t *testing.T) []exporter.Metric {
	t.Helper()
	dir := t.TempDir()
	limits := filepath.Join(dir, "limits.yml")
	if err := os.WriteFile(limits, []byte("limits: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := exporter.New(exporter.Options{
		App: "shop", Log: metriclog.Options{Dir: dir}, LimitsFile: limits,
		Sampler: sampler.Options{Gatherer: prometheus.NewRegistry()},
		Push:    []push.Options{{URL: "http://localhost"}},
		Verify:  []verify.Options{{URL: "http://localhost", Labels: map[string]string{"job": "shop"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	all := exporter.Catalogue()
	for _, m := range x.Collector.Metrics() {
		all = append(all, exporter.Metric{Name: m.Name, Labels: m.Labels})
	}
	return all
}
