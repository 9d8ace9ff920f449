// Package sampler gathers the metrics of client_golang once a second, so that the per-second endpoint and pushes have a
// value of each metric for every second.
//
//	s, err := sampler.New(c, sampler.Options{Gatherer: registry})
//	seconds, err := prom.NewSeconds(c, prom.SecondsOptions{Sampler: s})
//	stop := s.Start()
//
// A service that counts queue lengths or cache hits with client_golang gets per-second values of them without any other
// code. The Sampler calls a Gatherer directly after the end of each second. It keeps gauges unchanged. Of counters it
// keeps the increase since the previous gathering, so that the value of a second stands alone and servers need not
// compute a difference.
//
// The Sampler omits unknown values. An increase needs the total at both ends of its second, and the Sampler never
// estimates a total that it did not read. [Sampler] describes how such seconds are counted, and how a new counter is
// distinguished from a missed one.
package sampler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/internal/logonce"
)

const (
	// DefaultMaxSeries is the default of [Options].MaxSeries.
	DefaultMaxSeries = 10_000
	// DefaultMaxDelay is the default of [Options].MaxDelay.
	DefaultMaxDelay = 250 * time.Millisecond

	maxMaxDelay = 500 * time.Millisecond
)

// Options configures a [Sampler]. Gatherer is required.
type Options struct {
	// Gatherer is sampled, for example prometheus.DefaultGatherer. Each element of a prometheus.Gatherers is sampled
	// separately and concurrently, so that none waits for a slow one.
	Gatherer prometheus.Gatherer
	// Prefix is the prefix of all names, "persecond_" if empty. It must separate the names, because a series must not
	// mix samples with and without timestamps.
	Prefix string
	// MaxSeries is the maximum number of sampled series, [DefaultMaxSeries] if zero. Further series are omitted,
	// counted, and logged once. A series takes eight bytes for each second of the Collector's history, and about two
	// hundred bytes for its labels. A series that is no longer gathered counts until its last second has left the
	// history.
	MaxSeries int
	// MaxDelay is the maximum time between the end of a second and the end of its gathering, [DefaultMaxDelay] if zero,
	// at most half a second. A gathering that takes longer is dropped, because some of its counts may belong to the
	// next second. Use a larger value for slow Collectors, and for a hundred thousand series.
	MaxDelay time.Duration
	// Logger receives a message when gathering fails or is too slow, and when it works again, each at most once a
	// minute; slog.Default if nil.
	Logger *slog.Logger
}

// Sampler gathers metrics once a second. A second is sealed when it was gathered. Names get a prefix, and increases the
// ending _increase:
//
//	http_requests_total, a counter       persecond_http_requests_total_increase: its increase in this second
//	queue_length, a gauge                persecond_queue_length: its value at the end of the second
//	rt_seconds, a histogram or summary   persecond_rt_seconds_count_increase and _sum_increase: their increase
//
// Names are UTF-8. Pushes have them unchanged. The per-second endpoint writes names with characters other than letters,
// digits, _ and : in quotes for clients that accept them, such as Prometheus 3, and otherwise in the escaped form of
// Prometheus, which begins with U__ and shows other characters by their code: persecond_queue.length becomes
// U__persecond__queue_2e_length. Two names therefore never become one. Prometheus 2 drops pushed series with such
// names.
//
// An increase is the difference of two known totals: the total at the end of the second, and the total at its start.
// The total at the start is known in three cases. In all other cases the second has no sample:
//
//   - The gathering of the previous second had the counter, with the same created timestamp and no larger total.
//   - The counter was created in this second, according to its created timestamp, so it was zero. All counters,
//     histograms and summaries of client_golang have created timestamps. A new label value therefore has its first
//     second, and a counter that was removed and created again has its counts since then.
//   - The counter has no created timestamp, as the constant metrics of some Collectors. The gathering of the previous
//     second had its family, without an error and without this counter, so the counter was zero. This does not hold for
//     a family that had a forgotten or omitted counter, because that counter may be this one. A counter is forgotten if
//     it was not gathered for the length of the history.
//
// Omitted values are counted. sampler_missed_seconds_total counts the seconds of a Gatherer without increases. A failed
// or delayed gathering costs two seconds: its own and the next one, because the total at its start is unknown. If only
// some counters lack this total, sampler_unplaced_increases_total counts each second of each of these counters. The
// first sampled second has the increases of counters that were created in it.
//
// Create a Sampler with [New], set it in the options of the per-second endpoint and the pushes, and run it with
// [Sampler.Run]. It is safe for concurrent use. It publishes metrics about itself until Run has returned. A second
// costs about as much as a scrape with promhttp; most of the cost is Gather.
//
// The Sampler does not sample buckets of histograms. It also omits the following, which sampler_left_out_series counts:
//
//   - gauge histograms;
//   - metrics with their own timestamp, because their value belongs to another second;
//   - names, and names and values of labels, that are not UTF-8;
//   - label names that begin with __, which are reserved for servers;
//   - metrics that a Gatherer returns twice;
//   - metrics that another Gatherer already has, until the old ones have left the history;
//   - metrics whose name with the ending already belongs to another metric: the gauge x_increase, if x is a counter.
//
// A gauge that is NaN has no sample, nor has an increase that is not a finite number. A label with an empty value
// counts as absent, as it does for servers.
//
// Limitations: A second includes the counts between its end and its gathering. In most seconds this takes some
// microseconds, and never more than MaxDelay. If a counter without a created timestamp restarts and exceeds its
// previous total within one second, the second has the difference of the two totals. The counts of a counter between
// its last gathering and its removal belong to no second. Created timestamps are trusted only while the wall clock
// shows new times. After the clock was set back, new counters lack their first second for as long as the clock was set
// back by. A Collector that panics ends the program, as it does during a scrape, because prometheus.Registry runs it in
// a separate goroutine.
type Sampler struct {
	stats     *collector.Collector
	opts      Options
	unpublish func() // removes the metrics
	log       logonce.Logger

	made time.Time

	sampling sync.Mutex // serializes calls of Sample
	sources  []*source
	clock    wallClock

	mu           sync.Mutex // guards the fields below, and the fields of sources except running
	series       map[string]*series
	order        []*series
	sorted       bool               // order is sorted by key
	families     map[string]*family // by full name
	key          []byte             // buffer for a key
	first        int64              // first sampled second; never before sampling begins
	last         int64              // last second that was sampled or missed
	errors       int64              // number of failed gatherings
	late         int64              // number of gatherings that exceeded MaxDelay
	missed       int64              // number of seconds of sources without increases
	unattributed int64              // number of increases that belong to no known second
	omitted      int64              // number of series omitted from the last gatherings
	full         bool               // the log has a message that MaxSeries was reached
}

// defaults sets the fields that are zero to their defaults.
func (o *Options) defaults() {
	o.Prefix, o.Logger = cmp.Or(o.Prefix, "persecond_"), cmp.Or(o.Logger, slog.Default())
	o.MaxSeries, o.MaxDelay = cmp.Or(o.MaxSeries, DefaultMaxSeries), cmp.Or(o.MaxDelay, DefaultMaxDelay)
}

// Check returns all errors of the options, as [collector.OptionError]s.
func (o Options) Check() error {
	o.defaults()
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "sampler", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if _, err := sourcesOf(o.Gatherer); err != nil {
		wrong("Gatherer", "%w", err)
	}
	if !validName(o.Prefix) {
		wrong("Prefix", "%q: must have only letters, digits and _, and must not begin with a digit", o.Prefix)
	}
	if o.MaxSeries < 1 {
		wrong("MaxSeries", "%d; must be at least 1", o.MaxSeries)
	}
	if o.MaxDelay < time.Millisecond || o.MaxDelay > maxMaxDelay {
		wrong("MaxDelay", "%v; must be between 1ms and %v", o.MaxDelay, maxMaxDelay)
	}
	return errors.Join(errs...)
}

// New returns a Sampler on the timeline of a Collector. The error names every invalid option.
func New(c *collector.Collector, o Options) (*Sampler, error) {
	err := o.Check()
	if c == nil {
		err = errors.Join(&collector.OptionError{Package: "sampler", Err: errors.New("no Collector")}, err)
	}
	if err != nil {
		return nil, err
	}
	o.defaults()
	sources, _ := sourcesOf(o.Gatherer) // Check has returned the error
	s := &Sampler{
		stats: c, opts: o, made: time.Now(), log: logonce.Logger{To: o.Logger}, sources: sources,
		series: map[string]*series{}, families: map[string]*family{},
		first: never, last: c.Seal().Open - 2,
	}
	s.unpublish = c.Publish(s.metrics()...)
	return s, nil
}

// Run samples each second until ctx ends. Then it waits for the end of the open second, at most about one second, and
// samples it. It returns nil, and does not wait for Gatherers that exceed MaxDelay.
func (s *Sampler) Run(ctx context.Context) error {
	defer s.unpublish()
	return background.EverySecond(ctx, s.stats.Timeline(), func() error {
		s.Sample()
		return nil
	})
}

// Start runs Run in a new goroutine. The returned function cancels the context of Run, waits for Run to return, and
// returns its error. It may be called several times.
func (s *Sampler) Start() (stop func() error) { return background.Start(s.Run) }

// Close removes the metrics of a Sampler that never ran.
func (s *Sampler) Close() { s.unpublish() }

// Sample gathers the metrics now, for the second that has just ended, unless that second was already sampled or missed.
// It takes at most MaxDelay and the time to compute the increases. Run calls it every second. Call it directly to
// control the time.
func (s *Sampler) Sample() {
	s.sampling.Lock()
	defer s.sampling.Unlock()
	line := s.stats.Timeline()
	began := line.Now()
	now := time.Now()
	open := line.At(began)
	second, into := open.Index-1, began.Sub(open.Start)
	s.mu.Lock()
	done, begins := second <= s.last, s.first == never
	if begins && into > s.opts.MaxDelay { // the start of this second is unknown; begin with the next one
		s.first, s.last = open.Index, second
	}
	s.mu.Unlock()
	if done {
		return
	}
	from, to := s.clock.read(open.Index, now.Sub(s.made), now.Round(0), into)
	if begins && into > s.opts.MaxDelay {
		return
	}
	all := s.gather(line, open)

	s.mu.Lock()
	defer s.mu.Unlock()
	if begins {
		s.first = second
	}
	s.report(all)
	if second <= s.last {
		return // the process stalled, and the second was counted as missed and sealed
	}
	s.miss(second)
	s.last, s.omitted = second, 0
	for i, src := range s.sources {
		if all[i].failed() {
			s.missed++
			continue
		}
		if src.last != second-1 && second > s.first {
			s.missed++
		}
		s.record(&gathered{
			source: src, second: second, complete: all[i].err == nil,
			from: from, to: to, now: time.Now().UnixNano(),
		}, all[i].families)
		src.last = second
	}
	s.expire()
}

// miss counts the seconds between s.last and second as missed, if sampling has begun. mu must be held.
func (s *Sampler) miss(second int64) {
	if s.first != never {
		s.missed += max(second-max(s.last+1, s.first), 0) * int64(len(s.sources))
	}
}

// validName reports whether every server accepts a name of a metric or a label without quotes.
func validName(name string) bool { return model.LegacyValidation.IsValidLabelName(name) }

// validUTF8 reports whether a name of a metric or a label is valid in quotes.
func validUTF8(name string) bool { return model.UTF8Validation.IsValidLabelName(name) }

// never is a second before all others.
const never = math.MinInt64 / 2

// family is a metric as it is exported.
type family struct {
	table.Family
	metric string // name that the Gatherers give it
	series int    // number of its series in Sampler.series
}

// metrics returns the metrics that a Sampler publishes about itself.
func (s *Sampler) metrics() []collector.Metric {
	metric := func(name, unit string, value func() int64, help string) collector.Metric {
		return collector.Metric{Name: name, Unit: unit, Help: help, Value: func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return float64(value())
		}}
	}
	return []collector.Metric{
		metric("sampler_series", "", func() int64 { return int64(len(s.order)) },
			"Number of series of other libraries that are sampled each second."),
		metric("sampler_errors_total", "", func() int64 { return s.errors },
			"Gatherings that failed completely or in part."),
		metric("sampler_missed_seconds_total", "seconds", func() int64 { return s.missed },
			"Seconds without the increases of a gatherer, because its gathering, "+
				"or its gathering of the previous second, failed or exceeded MaxDelay. Sum over all gatherers."),
		metric("sampler_late_total", "", func() int64 { return s.late },
			"Gatherings dropped because they finished more than MaxDelay after their second. "+
				"They may include counts of the next second."),
		metric("sampler_unplaced_increases_total", "", func() int64 { return s.unattributed },
			"Increases omitted because the part that belongs to a single second is unknown."),
		metric("sampler_left_out_series", "", func() int64 { return s.omitted },
			"Number of series omitted from the last gathering: beyond MaxSeries, returned twice, with a timestamp, "+
				"or with a name or type that is not sampled."),
	}
}
