package prom

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/windowstat/windowstat/collector"
)

// Handler serves the metrics page: all resources, windowstat itself, the Go runtime and the process; as text,
// OpenMetrics or protobuf, as the client asks. It has a registry of its own. The error names every option that is
// wrong.
func Handler(c *collector.Collector, o Options) (http.Handler, error) {
	p, err := New(c, o)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	if err := errors.Join(
		registry.Register(p),
		registry.Register(collectors.NewGoCollector()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	); err != nil {
		return nil, err
	}
	return promhttp.InstrumentMetricHandler(registry,
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true, Registry: registry})), nil
}
