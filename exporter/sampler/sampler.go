// Package sampler gathers the metrics of client_golang once a second, so that the per-second endpoint and pushes have every
// second of them.
package sampler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// DefaultMaxSeries is the default of [Options].MaxSeries.
const DefaultMaxSeries = 10_000

// Options configure a [Sampler]. Gatherer is required.
type Options struct {
	// Gatherer is what is sampled, such as prometheus.DefaultGatherer.
	Gatherer prometheus.Gatherer
	// Prefix is the prefix of all names, "persecond_" if empty: samples with and without timestamps must not be mixed in one
	// series.
	Prefix string
	// MaxSeries is the most series that are sampled, [DefaultMaxSeries] if zero; others are left out and counted. A series takes
	// eight bytes for each second of the Collector's history.
	MaxSeries int
	// Logger receives a message when gathering fails and when it works again; slog.Default if nil.
	Logger *slog.Logger
}

// Sampler gathers metrics once a second. A second is sealed when it was gathered. Names get a prefix, and stay whole, so that no
// two become one:
//
//	http_requests_total, a counter       persecond_http_requests_total: its increase in this second
//	queue_length, a gauge                persecond_queue_length: its value at the end of the second
//	rt_seconds, a histogram or summary   persecond_rt_seconds_count and _sum: their increase
//
// A counter that is seen for the first time has its first second if it is known to have begun with zero: the gathering of the
// second before had everything, without an error and without a series for which there was no room; or the counter was created
// since, as its created timestamp says, which all counters, histograms and summaries of client_golang have. So a Collector that
// always fails, or too many series, costs only counters without a created timestamp their first second. No increase is made up.
//
// A Sampler must be made with [New], set in the options of the per-second endpoint and the pushes, and run by [Sampler.Run]. It
// is safe for concurrent use, and publishes metrics about itself until Run has returned. It costs one Gather a second, about a
// millisecond for a thousand series.
//
// Limitations: gathering begins some microseconds after the end of the second, and what is counted until then, or while it lasts,
// may be in that second; sampler_late_total counts those that took longer, on a machine that stands still, say. If it fails, or takes longer than a second, the
// seconds concerned have no samples, because an increase over several seconds belongs to none of them; the first second of a
// counter that appears meanwhile is one of these. A counter that had counted before it was registered shows all that in its
// first second. One that is removed and created again within a second shows only what it then has more than it had. Created
// timestamps are trusted only while the wall clock shows times that it has not shown before: after it was set back, for as long
// as it was set back by, they tell nothing. Not sampled are buckets of histograms, and names and labels with other characters
// than letters, digits and _.
type Sampler struct {
	stats     *collector.Collector
	opts      Options
	unpublish func() // removes the metrics

	mu       sync.Mutex // guards what follows
	series   map[string]*sampled
	order    []*sampled               // by name and labels
	key      []byte                   // a buffer
	families map[string]*table.Family // by full name
	last     int64                    // last second that was sampled or missed
	previous int64                    // last second that was sampled
	complete bool                     // nothing was missing in previous
	began    time.Time                // when its gathering began
	mark     time.Time                // the latest time that the wall clock had shown then
	failing  bool
	errors   int64 // gatherings that failed
	missed   int64 // seconds without a gathering
	late     int64 // gatherings that ended later than soon
	left     int64 // series left out of the last gathering
}

func (o *Options) defaults() {
	o.Prefix, o.MaxSeries, o.Logger = cmp.Or(o.Prefix, "persecond_"), cmp.Or(o.MaxSeries, DefaultMaxSeries), cmp.Or(o.Logger, slog.Default())
}

// Check returns everything that is wrong with the options, as [collector.OptionError]s.
func (o Options) Check() error {
	o.defaults()
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "sampler", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if o.Gatherer == nil {
		wrong("Gatherer", "is missing")
	}
	if !validName(o.Prefix) {
		wrong("Prefix", "%q: letters, digits and _ are allowed, no digit in front", o.Prefix)
	}
	if o.MaxSeries < 1 {
		wrong("MaxSeries", "%d; at least 1 is needed", o.MaxSeries)
	}
	return errors.Join(errs...)
}

// New makes a Sampler on the timeline of a Collector. The error names every invalid option.
func New(c *collector.Collector, o Options) (*Sampler, error) {
	err := o.Check()
	if c == nil {
		err = errors.Join(&collector.OptionError{Package: "sampler", Err: errors.New("no Collector")}, err)
	}
	if err != nil {
		return nil, err
	}
	o.defaults()
	open := c.Seal().Open
	s := &Sampler{
		stats: c, opts: o, series: map[string]*sampled{}, families: map[string]*table.Family{},
		last: open - 1, previous: never,
	}
	s.unpublish = c.Publish(s.metrics()...)
	return s, nil
}

// Run samples each second until ctx ends. Then it waits for the open second, at most about a second, and samples it, waiting at
// most another second for the Gatherer.
func (s *Sampler) Run(ctx context.Context) error {
	defer s.unpublish()
	line := s.stats.Timeline()
	timer := time.NewTimer(0) // the first gathering is the baseline
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

// Sample gathers now, for the second that has just ended. Run calls it every second; call it directly to control the time.
func (s *Sampler) Sample(ctx context.Context) {
	line := s.stats.Timeline()
	second, began := line.At(line.Now()).Index-1, time.Now()
	families, err := gather(ctx, s.opts.Gatherer)
	now := line.Now()
	at := line.At(now)
	late := at.Index-1 > second // it is unknown which second the values belong to
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
			s.opts.Logger.Error("cannot gather metrics; retrying every second", "err", err)
		} else {
			s.opts.Logger.Info("gathering metrics works again")
		}
	}
	if second <= s.last {
		if s.previous == never && (err == nil || len(families) > 0) { // the first, within a second, is the baseline
			s.keep(second, began, families, err)
		}
		return
	}
	if late {
		return
	}
	if now.Sub(at.Start) > soon {
		s.late++
	}
	s.missed += second - s.last - 1
	s.last = second
	if err != nil && len(families) == 0 {
		s.missed++
		return
	}
	s.keep(second, began, families, err)
}

// keep stores what a gathering had, and what is to be known of it in the next second. Holds mu.
func (s *Sampler) keep(second int64, began time.Time, families []*dto.MetricFamily, err error) {
	complete := s.record(second, families)
	s.previous, s.complete = second, complete && err == nil
	s.mark = latest(s.mark, s.began.Round(0).Add(began.Sub(s.began)), began.Round(0)) // by the wall clock
	s.began = began
}

// latest returns the latest time that the wall clock can have shown until now: before is what that was at the gathering before, and
// unset what the clock would show now if nobody had set it since then.
func latest(before, unset, now time.Time) time.Time {
	return slices.MaxFunc([]time.Time{before, unset, now}, time.Time.Compare)
}

// soon is how long after the end of a second it should have been gathered.
const soon = 100 * time.Millisecond

// never is a second that precedes all others.
const never = math.MinInt64 / 2

// gather calls the Gatherer and turns a panic into an error. It waits until ctx ends at most.
func gather(ctx context.Context, g prometheus.Gatherer) ([]*dto.MetricFamily, error) {
	type result struct {
		families []*dto.MetricFamily
		err      error
	}
	done := make(chan result, 1) // so that a late result does not block the goroutine
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

// Start runs Run in a new goroutine. The returned stop cancels its context, waits for it, and returns its error; it may be
// called several times.
func (s *Sampler) Start() (stop func() error) { return background.Start(s.Run) }

// Close removes the metrics of a Sampler that never ran.
func (s *Sampler) Close() { s.unpublish() }
