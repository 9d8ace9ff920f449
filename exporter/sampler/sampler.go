// Package sampler gathers what a service counts with client_golang once a second, so that per-second pages and pushes have
// every second of it.
package sampler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// DefaultMaxSeries is what [Options].MaxSeries is if it does not say.
const DefaultMaxSeries = 10_000

// Options configure a [Sampler]. Gatherer is needed.
type Options struct {
	// Gatherer is what is sampled, such as prometheus.DefaultGatherer.
	Gatherer prometheus.Gatherer
	// Prefix begins all names, "persecond_" if empty: samples with and without a time must not meet in one series.
	Prefix string
	// MaxSeries is how many series are sampled, [DefaultMaxSeries] if zero; others are left out, and counted. Each takes
	// eight bytes for each second of the Collector's history.
	MaxSeries int
	// Logger is told when gathering begins to fail and when it works again; slog.Default if nil.
	Logger *slog.Logger
}

// Sampler gathers metrics once a second. A second is sealed when it was gathered. Names get a prefix:
//
//	http_requests_total, a counter       persecond_http_requests: what was added in this second
//	queue_length, a gauge                persecond_queue_length: its value at the end of the second
//	rt_seconds, a histogram or summary   persecond_rt_seconds_count and _sum: what was added
//
// A Sampler must be made with [New], given to the per-second page and the pushes that are to have it, and be running, see
// [Sampler.Run]. It is safe for concurrent use, and publishes metrics about itself until Run has returned. It costs a
// gathering each second, a millisecond or so for a thousand series.
//
// Limitations: seconds end when gathering begins, some microseconds after their end. If it took longer than a second, or
// failed, the seconds concerned have no samples: what was added in several of them belongs to none. Buckets of
// histograms are not sampled, nor are names and labels that are not of letters, digits and _.
type Sampler struct {
	stats    *collector.Collector
	opts     Options
	withdraw func() // takes the metrics away

	mu       sync.Mutex // guards what follows
	series   map[string]*sampled
	order    []*sampled               // by name and labels
	key      []byte                   // memory for one
	families map[string]*table.Family // by full name
	last     int64                    // the last second that was dealt with
	previous int64                    // the last one that was gathered
	complete bool                     // and nothing was missing in that
	failing  bool
	errors   int64 // gatherings that failed
	missed   int64 // seconds without a gathering
	left     int64 // series that were left out of the last one
}

// New makes a Sampler on the timeline of a Collector. The error names every option that is wrong.
func New(c *collector.Collector, o Options) (*Sampler, error) {
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
		errs = append(errs, errors.New("sampler: no Collector"))
	}
	if o.Gatherer == nil {
		errs = append(errs, errors.New("sampler: no Gatherer"))
	}
	if !validName(o.Prefix) {
		errs = append(errs, fmt.Errorf("sampler: Prefix %q: letters, digits and _ are allowed, no digit in front", o.Prefix))
	}
	if o.MaxSeries < 1 {
		errs = append(errs, fmt.Errorf("sampler: MaxSeries is %d; at least 1 is needed", o.MaxSeries))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	open := c.Seal().Open
	s := &Sampler{
		stats: c, opts: o, series: map[string]*sampled{}, families: map[string]*table.Family{},
		last: open - 1, previous: never,
	}
	s.withdraw = c.Publish(s.metrics()...)
	return s, nil
}

// Run samples each second until ctx ends. Then it waits for the second that is open, at most about a second, and samples
// that one, too. A gathering that blocks is waited for, but a second at most when ctx has ended.
func (s *Sampler) Run(ctx context.Context) error {
	defer s.withdraw()
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
	families, err := gather(ctx, s.opts.Gatherer)
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

// Start is Run in a goroutine. stop ends it, waits for it and returns its error; it may be called several times.
func (s *Sampler) Start() (stop func() error) { return background.Start(s.Run) }

// Close takes the metrics of a Sampler away that never ran.
func (s *Sampler) Close() { s.withdraw() }
