// Package sampler gathers the metrics of client_golang once a second, so that the per-second endpoint and pushes have every
// second of them.
//
//	s, err := sampler.New(c, sampler.Options{Gatherer: registry})
//	seconds, err := prom.NewSeconds(c, prom.SecondsOptions{Sampler: s})
//	stop := s.Start()
//
// A service that counts queue lengths or cache hits with client_golang already gets them second by second without another line of
// code. A Gatherer is called right behind the end of each second. Gauges are kept as they are, and of counters the increase since the
// gathering before, so that a second is a number of its own and not a difference that a server has to form.
//
// What is not known is left out: an increase needs the total at both ends of its second, and a total that was not read at one of them
// is not estimated. How such seconds are counted, and how a new counter is told from one that was missed, is told at [Sampler].
package sampler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// Options configure a [Sampler]. Gatherer is required.
type Options struct {
	// Gatherer is what is sampled, such as prometheus.DefaultGatherer. Each of a prometheus.Gatherers is sampled by itself, at the
	// same time as the others, so that none has to wait for a slow one.
	Gatherer prometheus.Gatherer
	// Prefix is the prefix of all names, "persecond_" if empty: samples with and without timestamps must not be mixed in one
	// series.
	Prefix string
	// MaxSeries is the most series that are sampled, [DefaultMaxSeries] if zero; others are left out, counted, and logged once.
	// A series takes eight bytes for each second of the Collector's history, and some two hundred for its labels. A series that
	// is not gathered any more counts until its last second has left the history.
	MaxSeries int
	// MaxDelay is how long after the end of a second its gathering may end, [DefaultMaxDelay] if zero, half a second at most. A
	// gathering that takes longer is left out: it is unknown how much of it was counted in the next second. A larger one is for
	// Collectors that are slow, and for a hundred thousand series.
	MaxDelay time.Duration
	// Logger receives a message when gathering fails or is too slow and when it works again, each at most once a minute;
	// slog.Default if nil.
	Logger *slog.Logger
}

// Sampler gathers metrics once a second. A second is sealed when it was gathered. Names get a prefix, and stay whole, so that no
// two become one:
//
//	http_requests_total, a counter       persecond_http_requests_total: its increase in this second
//	queue_length, a gauge                persecond_queue_length: its value at the end of the second
//	rt_seconds, a histogram or summary   persecond_rt_seconds_count and _sum: their increase
//
// An increase is the difference of two totals that are known: at the end of the second, and at its start. The total at the start is
// known in three cases; in all others the second has no sample:
//
//   - The gathering of the second before had the counter, with the same created timestamp and no larger total.
//   - The counter was created in this second, as its created timestamp says: it was zero. All counters, histograms and summaries
//     of client_golang have one. So a new label value has its first second, and a counter that was removed and created again
//     has what it counted since.
//   - The counter has no created timestamp, as those of Collectors that make constant metrics, and the gathering of the second
//     before had its family, without an error, and without this counter: it was zero. This does not hold for a family of which a
//     counter was forgotten or left out, because it may be this one. A counter is forgotten when it was not gathered for as long
//     as the history.
//
// What is left out is counted. sampler_missed_seconds_total has the seconds of a Gatherer without increases: a gathering that fails
// or is late costs two, its own and the next one, which lacks the total at its start. Where only some counters lack it, each
// second of each of them is in sampler_unplaced_increases_total. The second in which sampling begins has the increases of counters
// that were created in it.
//
// A Sampler must be made with [New], set in the options of the per-second endpoint and the pushes, and run by [Sampler.Run]. It
// is safe for concurrent use, and publishes metrics about itself until Run has returned. A second costs about as much as a scrape by
// promhttp: most of it is Gather.
//
// Not sampled are buckets of histograms, and these, which sampler_left_out_series counts: gauge histograms; metrics with a
// timestamp of their own, because their value is of another second; names and labels with other characters than letters, digits
// and _, and label values that are not UTF-8; metrics that a Gatherer gives twice; those that another Gatherer has already, or that
// change their type, until the old ones have left the history. A gauge that is NaN, and an increase that is no finite number, has no
// sample. A label whose value is empty is none, as for servers.
//
// Limitations: what is counted between the end of a second and its gathering, some microseconds in most seconds and never
// more than MaxDelay, is in that second. A counter without a created timestamp that begins again within a second with more than it had
// shows the difference. What a counter counted between its last gathering and its removal is in no second. Created
// timestamps are trusted only while the wall clock shows times that it has not shown before: after it was set back, for as long
// as it was set back by, counters that are created lack their first second. A Collector that panics ends the program, as it
// does when it is scraped: prometheus.Registry runs it in a goroutine of its own.
type Sampler struct {
	stats     *collector.Collector
	opts      Options
	unpublish func() // removes the metrics
	log       logonce.Logger

	made time.Time

	turn    sync.Mutex // held by Sample
	sources []*source
	clock   wallClock

	mu       sync.Mutex // guards what follows, and what sources remember
	series   map[string]*series
	order    []*series
	sorted   bool               // order is, by key
	families map[string]*family // by full name
	key      []byte             // a buffer
	first    int64              // the second with which sampling began
	last     int64              // the last second that was sampled or missed
	errors   int64              // gatherings that failed
	late     int64              // gatherings that ended too late
	missed   int64              // seconds of sources without increases
	unplaced int64              // increases without a second
	left     int64              // series left out of the last gatherings
	full     bool               // MaxSeries was reached, and logged
}

func (o *Options) defaults() {
	o.Prefix, o.Logger = cmp.Or(o.Prefix, "persecond_"), cmp.Or(o.Logger, slog.Default())
	o.MaxSeries, o.MaxDelay = cmp.Or(o.MaxSeries, DefaultMaxSeries), cmp.Or(o.MaxDelay, DefaultMaxDelay)
}

// Check returns everything that is wrong with the options, as [collector.OptionError]s.
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
		wrong("Prefix", "%q: letters, digits and _ are allowed, no digit in front", o.Prefix)
	}
	if o.MaxSeries < 1 {
		wrong("MaxSeries", "%d; at least 1 is needed", o.MaxSeries)
	}
	if o.MaxDelay < time.Millisecond || o.MaxDelay > maxMaxDelay {
		wrong("MaxDelay", "%v; from 1ms to %v are allowed", o.MaxDelay, maxMaxDelay)
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
	sources, _ := sourcesOf(o.Gatherer) // checked
	s := &Sampler{
		stats: c, opts: o, made: time.Now(), log: logonce.Logger{To: o.Logger}, sources: sources,
		series: map[string]*series{}, families: map[string]*family{},
		first: never, last: c.Seal().Open - 2,
	}
	s.unpublish = c.Publish(s.metrics()...)
	return s, nil
}

// Run samples each second until ctx ends. Then it waits for the open second, at most about a second, and samples it. It returns
// nil, and waits for no Gatherer that is late.
func (s *Sampler) Run(ctx context.Context) error {
	defer s.unpublish()
	return background.EverySecond(ctx, s.stats.Timeline(), func() error {
		s.Sample()
		return nil
	})
}

// Start runs Run in a new goroutine. The returned stop cancels its context, waits for it, and returns its error; it may be
// called several times.
func (s *Sampler) Start() (stop func() error) { return background.Start(s.Run) }

// Close removes the metrics of a Sampler that never ran.
func (s *Sampler) Close() { s.unpublish() }

// Sample gathers now, for the second that has just ended, unless that was sampled or missed already. It takes no longer than
// MaxDelay and what the increases take. Run calls it every second; call it directly to control the time.
func (s *Sampler) Sample() {
	s.turn.Lock()
	defer s.turn.Unlock()
	line := s.stats.Timeline()
	began := line.Now()
	now := time.Now()
	open := line.At(began)
	second, into := open.Index-1, began.Sub(open.Start)
	s.mu.Lock()
	over, begins := second <= s.last, s.first == never
	if begins && into > s.opts.MaxDelay { // the next second is the first whose start is known
		s.first, s.last = open.Index, second
	}
	s.mu.Unlock()
	if over {
		return
	}
	from, to := s.clock.turn(open.Index, now.Sub(s.made), now.Round(0), into)
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
		return // it was missed, as the process stood still, and is sealed
	}
	s.miss(second)
	s.last, s.left = second, 0
	for i, src := range s.sources {
		if all[i].failed() {
			s.missed++
			continue
		}
		if src.last != second-1 && second > s.first {
			s.missed++
		}
		s.record(&gathered{source: src, second: second, complete: all[i].err == nil, from: from, to: to, now: time.Now().UnixNano()}, all[i].families)
		src.last = second
	}
	s.expire()
}

// miss counts the seconds between the last one and the given one, if sampling has begun. Holds mu.
func (s *Sampler) miss(second int64) {
	if s.first != never {
		s.missed += max(second-max(s.last+1, s.first), 0) * int64(len(s.sources))
	}
}

var validName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`).MatchString

// never is a second that precedes all others.
const never = math.MinInt64 / 2

// family is a metric as it is shown.
type family struct {
	table.Family
	series int // that are remembered
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
			"Series of other libraries that are sampled each second."),
		metric("sampler_errors_total", "", func() int64 { return s.errors },
			"Samplings that failed, in part at least."),
		metric("sampler_missed_seconds_total", "seconds", func() int64 { return s.missed },
			"Seconds without the increases of a gatherer, because its gathering, or that of the second before, failed or was late; of several gatherers the sum."),
		metric("sampler_late_total", "", func() int64 { return s.late },
			"Samplings that were left out, because they ended too long after their second: what was counted meanwhile may be in them."),
		metric("sampler_unplaced_increases_total", "", func() int64 { return s.unplaced },
			"Increases left out, because it is not known how much of them was counted in one second."),
		metric("sampler_left_out_series", "", func() int64 { return s.left },
			"Series left out of the last sampling: too many, given twice, with a timestamp, or of names or types that are not sampled."),
	}
}
