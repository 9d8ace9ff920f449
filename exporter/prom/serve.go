package prom

import (
	"context"
	"fmt"
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
// The page also has windowstat's metrics about itself, without timestamps. It is an error if mux has the path already. For a
// metric log, pushes or other names use package exporter.
func ServeSeconds(ctx context.Context, g prometheus.Gatherer, mux *http.ServeMux) error {
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
	if page.self, err = gather.New(c, gather.Options{}); err != nil {
		return err
	}
	if err := handle(mux, "/metrics/seconds", page); err != nil {
		return err
	}
	return s.Run(ctx)
}

// handle is mux.Handle with an error in place of a panic, for a pattern that may be taken.
func handle(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("prom: %v", p)
		}
	}()
	mux.Handle(pattern, h)
	return nil
}
