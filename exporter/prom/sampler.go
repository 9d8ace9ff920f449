package prom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
)

// DefaultMaxSeries is what [SamplerOptions].MaxSeries is if it does not say.
const DefaultMaxSeries = 10_000

// SamplerOptions configure a [Sampler]. The zero value is sensible.
type SamplerOptions struct {
	// Prefix is what the names begin with, "persecond_" if empty: samples with and without a time must not meet in one
	// series.
	Prefix string
	// MaxSeries is how many series are sampled, [DefaultMaxSeries] if zero; others are left out, and counted. Each takes
	// eight bytes for each second of the Collector's history.
	MaxSeries int
	// Logger is told when gathering begins to fail and when it works again; slog.Default if nil.
	Logger *slog.Logger
}

// Sampler gathers what a service counts with client_golang once a second, so that a page of [Seconds], or a push, has
// every second of it. It is an [exporter.Stream]; a second of it is sealed when it was gathered. Names get a prefix:
//
//	http_requests_total, a counter       persecond_http_requests: what was added in this second
//	queue_length, a gauge                persecond_queue_length: its value at the end of the second
//	rt_seconds, a histogram or summary   persecond_rt_seconds_count and _sum: what was added
//
// A Sampler must be made with [NewSampler], and its Run be running. It is safe for concurrent use. It costs a gathering
// each second, a millisecond or so for a thousand series.
//
// Limitations: seconds end when gathering begins, some microseconds after their end. If it took longer than a second, or
// failed, the seconds concerned have no samples: what was added in several of them belongs to none. Buckets of
// histograms are not sampled, nor are names and labels that are not of letters, digits and _.
type Sampler struct {
	stats    *collector.Collector
	gatherer prometheus.Gatherer
	opts     SamplerOptions

	mu       sync.Mutex // guards what follows
	series   map[string]*sampled
	order    []*sampled                  // by name and labels
	key      []byte                      // memory for one
	families map[string]*exporter.Family // by full name
	last     int64                       // the last second that was dealt with
	previous int64                       // the last one that was gathered
	complete bool                        // and nothing was missing in that
	failing  bool
	errors   int64 // gatherings that failed
	missed   int64 // seconds without a gathering
	left     int64 // series that were left out of the last one
}

// NewSampler makes a Sampler on the timeline of a Collector. The error names every option that is wrong.
func NewSampler(c *collector.Collector, g prometheus.Gatherer, o SamplerOptions) (*Sampler, error) {
	if o.Prefix == "" {
		o.Prefix = "persecond_"
	}
	if o.MaxSeries == 0 {
		o.MaxSeries = DefaultMaxSeries
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	var errs []error
	if c == nil {
		errs = append(errs, errors.New("prom: no Collector"))
	}
	if g == nil {
		errs = append(errs, errors.New("prom: no Gatherer"))
	}
	if !validName(o.Prefix) {
		errs = append(errs, fmt.Errorf("prom: Prefix %q: letters, digits and _ are allowed, no digit in front", o.Prefix))
	}
	if o.MaxSeries < 1 {
		errs = append(errs, fmt.Errorf("prom: MaxSeries is %d; at least 1 is needed", o.MaxSeries))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	open := c.Seal().Open
	return &Sampler{
		stats: c, gatherer: g, opts: o, series: map[string]*sampled{}, families: map[string]*exporter.Family{},
		last: open - 1, previous: never,
	}, nil
}

// ServeSeconds gives a service that counts with client_golang a page with every second of it, at /metrics/seconds of mux,
// and samples until ctx ends. It is one line:
//
//	go prom.ServeSeconds(ctx, prometheus.DefaultGatherer, http.DefaultServeMux)
//
// For more, a log, a push, other names, take [NewSampler] and [NewSeconds].
func ServeSeconds(ctx context.Context, g prometheus.Gatherer, mux *http.ServeMux) error {
	c, err := collector.New(collector.Options{})
	if err != nil {
		return err
	}
	s, err := NewSampler(c, g, SamplerOptions{})
	if err != nil {
		return err
	}
	page, err := NewSeconds(c, SecondsOptions{Streams: []exporter.Stream{s}})
	if err != nil {
		return err
	}
	if err := handle(mux, "/metrics/seconds", page); err != nil {
		return err
	}
	return s.Run(ctx)
}

// handle is mux.Handle for a pattern that may be taken.
func handle(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("prom: %v", p)
		}
	}()
	mux.Handle(pattern, h)
	return nil
}

// Run samples each second until ctx ends. Then it waits for the second that is open, at most about a second, and samples
// that one, too. A gathering that blocks is waited for, but a second at most when ctx has ended.
func (s *Sampler) Run(ctx context.Context) error {
	line := s.stats.Timeline()
	timer := time.NewTimer(0) // the first gathering is what the next is compared with
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			now := line.Now()
			time.Sleep(line.At(now).End.Sub(now))
			last, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			s.Sample(last)
			return nil
		}
		s.Sample(ctx)
		now := line.Now()
		timer.Reset(line.At(now).End.Sub(now))
	}
}

// Sample gathers now, for the second that has ended. It is what Run does each second, for those who time it themselves.
func (s *Sampler) Sample(ctx context.Context) {
	line := s.stats.Timeline()
	second := line.At(line.Now()).Index - 1
	families, err := gather(ctx, s.gatherer)
	late := line.At(line.Now()).Index-1 > second // what it says is of another second, nobody knows which
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.errors++
	}
	if failing := err != nil; failing != s.failing {
		s.failing = failing
		if failing {
			s.opts.Logger.Error("metrics cannot be gathered; trying again each second", "err", err)
		} else {
			s.opts.Logger.Info("metrics are gathered again")
		}
	}
	if second <= s.last {
		if s.previous == never && err == nil { // the first, within a second: what the next is compared with
			s.record(second, families)
			s.previous, s.complete = second, s.left == 0
		}
		return
	}
	if late {
		return
	}
	s.missed += second - s.last - 1
	s.last = second
	if err != nil && len(families) == 0 {
		s.missed++
		return
	}
	s.record(second, families)
	s.previous, s.complete = second, err == nil && s.left == 0
}

// never is a second that nothing is compared with.
const never = math.MinInt64 / 2

// gather gathers, and makes an error of a panic. It does not wait longer than ctx.
func gather(ctx context.Context, g prometheus.Gatherer) ([]*dto.MetricFamily, error) {
	type result struct {
		families []*dto.MetricFamily
		err      error
	}
	done := make(chan result, 1) // so that one that comes late can go
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r = result{err: fmt.Errorf("panic: %v", p)}
			}
			done <- r
		}()
		r.families, r.err = g.Gather()
	}()
	select {
	case r := <-done:
		return r.families, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Sealed implements [exporter.Stream]. The second that ended just now is not, until it was gathered; but nobody waits
// longer than a second.
func (s *Sampler) Sealed(open int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if late := open - 2; s.last < late {
		s.missed += late - s.last
		s.last = late // it stays without
	}
	return min(s.last+1, open)
}

// Knows implements [exporter.Stream].
func (s *Sampler) Knows(metric string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.families[metric] != nil
}

// Size implements [exporter.Stream].
func (s *Sampler) Size(sel *exporter.Selection) (all exporter.Size) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.order {
		if x.selected(sel) {
			const rest = len(`{=""} 123456789 1700000000000`) + 1
			all = all.Add(exporter.Size{Samples: 1, Bytes: len(x.key) + 4*len(x.names) + rest})
		}
	}
	return all
}

// Walk implements [exporter.Stream].
func (s *Sampler) Walk(sel *exporter.Selection, from, to int64, limit exporter.Limit, sink exporter.Sink) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	to = min(to, from+max(limit.Seconds, 1))
	line := s.stats.Timeline()
	for _, x := range s.order {
		if !x.selected(sel) {
			continue
		}
		sink.Series(x.family, x.names, x.values)
		for i, v := range x.seconds(from, to) {
			if name, ok := line.Name(i); ok {
				sink.Value(name.Unix(), v)
			}
		}
	}
	return to
}

// selected reports whether a series is wanted.
func (x *sampled) selected(sel *exporter.Selection) bool {
	return len(sel.Resources) == 0 && (len(sel.Metrics) == 0 || slices.Contains(sel.Metrics, x.family.Name))
}

// Self implements [exporter.Source].
func (s *Sampler) Self(yield func(name string, value float64, labels ...string)) {
	s.mu.Lock()
	series, failed, missed, left := len(s.order), s.errors, s.missed, s.left
	s.mu.Unlock()
	yield(exporter.SamplerSeries, float64(series))
	yield(exporter.SamplerErrors, float64(failed))
	yield(exporter.SamplerMissed, float64(missed))
	yield(exporter.SamplerLeftOut, float64(left))
}
