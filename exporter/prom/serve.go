package prom

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// ServeSeconds adds the per-second endpoint to a service that counts with client_golang: it samples the Gatherer every second
// and serves /metrics/seconds on mux, until ctx ends. One line is enough:
//
//	go prom.ServeSeconds(ctx, prometheus.DefaultGatherer, http.DefaultServeMux)
//
// The page also has windowstat's metrics about itself, without timestamps. For a metric log, pushes or other names use package
// exporter. It panics if there is no Gatherer, or mux has a conflicting pattern, as [http.ServeMux.Handle] does.
func ServeSeconds(ctx context.Context, g prometheus.Gatherer, mux *http.ServeMux) error {
	if g == nil {
		panic("prom: no Gatherer")
	}
	c, err := collector.New(collector.Options{})
	if err != nil {
		return err
	}
	s, err := sampler.New(c, sampler.Options{Gatherer: g})
	if err != nil {
		return err
	}
	page, err := NewSeconds(c, SecondsOptions{Sampler: s})
	if err != nil {
		return err
	}
	page.self = gather.New(c, gather.Options{})
	mux.Handle("/metrics/seconds", page)
	return s.Run(ctx)
}
