package prom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/node"
)

// ServeOptions configures [ServeSeconds]. The zero value is a sensible default.
type ServeOptions struct {
	// History is the time for which sealed seconds are kept, [collector.DefaultHistory] if zero.
	History time.Duration
	// MaxSeries is the maximum number of sampled series, [sampler.DefaultMaxSeries] if zero. Other series are omitted
	// and counted.
	MaxSeries int
	// Logger receives a message when gathering fails and when it works again. The default is slog.Default.
	Logger *slog.Logger
}

// ServeSeconds adds the per-second endpoint to a service that counts with client_golang. It samples the Gatherer every
// second in the background until ctx ends, and serves GET /metrics/seconds on mux:
//
//	seconds, err := prom.ServeSeconds(ctx, prometheus.DefaultGatherer, http.DefaultServeMux, prom.ServeOptions{})
//	…
//	server := &http.Server{Addr: ":8080", ConnState: seconds.ConnState}
//
// The hook shows which responses were read. Without the hook all responses are unconfirmed, see [Seconds]. The page
// also has windowstat's self-metrics, without timestamps. For a metric log, pushes or other names use package exporter.
// The error names every invalid option, or a conflicting pattern of mux; in that case nothing runs.
func ServeSeconds(ctx context.Context, g prometheus.Gatherer, mux *http.ServeMux, o ServeOptions) (*Seconds, error) {
	c, err := collector.New(collector.Options{Windows: node.Options{History: o.History}})
	if err != nil {
		return nil, fmt.Errorf("prom: History: %w", err)
	}
	s, err := sampler.New(c, sampler.Options{Gatherer: g, MaxSeries: o.MaxSeries, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	page, err := NewSeconds(c, SecondsOptions{Sampler: s, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	page.self = gather.New(c, gather.Options{})
	if err := handle(mux, "GET /metrics/seconds", page); err != nil {
		return nil, err
	}
	go func() { _ = s.Run(ctx) }() // returns no error
	return page, nil
}

// handle is mux.Handle that returns an error instead of panicking.
func handle(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	if mux == nil {
		return errors.New("prom: no mux")
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("prom: %v", p)
		}
	}()
	mux.Handle(pattern, h)
	return nil
}
