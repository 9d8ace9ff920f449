package sampler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// scenario is a service that is sampled from the start of its first second.
type scenario struct {
	*testing.T
	stats   *collector.Collector
	sampler *sampler.Sampler
	log     bytes.Buffer
	begin   time.Time
	seconds int
	all     map[string]map[int64]float64
}

// run runs a scenario in a synctest bubble.
func run(t *testing.T, g prometheus.Gatherer, o sampler.Options, f func(s *scenario)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scenario{T: t, begin: time.Now(), all: map[string]map[int64]float64{}}
		var err error
		if s.stats, err = collector.New(collector.Options{}); err != nil {
			t.Fatal(err)
		}
		o.Gatherer, o.Logger = g, slog.New(slog.NewTextHandler(&s.log, nil))
		if s.sampler, err = sampler.New(s.stats, o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.sampler.Run(ctx) }()
		synctest.Wait()
		f(s)
		cancel()
		<-ended
		time.Sleep(time.Minute) // until late gatherings return
	})
}

// second advances to the middle of the next second and calls the functions.
func (s *scenario) second(happens ...func()) {
	time.Sleep(time.Until(s.begin.Add(time.Duration(s.seconds)*time.Second + 500*time.Millisecond)))
	synctest.Wait() // shows the race detector that no gathering is in progress
	for _, f := range happens {
		f()
	}
	s.seconds++
	s.keep()
}

// pass advances by n seconds.
func (s *scenario) pass(n int) {
	for range n {
		s.second()
	}
}

// keep copies the samples of the history.
func (s *scenario) keep() {
	line := s.stats.Timeline()
	to := s.sampler.Stream().Sealed(line.At(line.Now()).Index)
	for key, values := range read(s.sampler, to-60, to).all {
		if s.all[key] == nil {
			s.all[key] = map[int64]float64{}
		}
		for at, v := range values {
			s.all[key][at-s.begin.Unix()] = v
		}
	}
}

// want checks the seconds of a series, beginning with the second from. For example, "5 - 0" means 5 in the first
// second, no sample in the second one, and 0 in the third one.
func (s *scenario) want(key string, from int, want string) {
	s.Helper()
	time.Sleep(time.Until(s.begin.Add(time.Duration(s.seconds)*time.Second + 400*time.Millisecond)))
	s.keep()
	var got []string
	for i := range strings.Fields(want) {
		if v, ok := s.all[key][int64(from+i)]; ok {
			got = append(got, fmt.Sprint(v))
		} else {
			got = append(got, "-")
		}
	}
	if strings.Join(got, " ") != want {
		s.Errorf("%s has %s from second %d on, want %s", key, strings.Join(got, " "), from, want)
	}
}

// counted checks self-metrics of the Sampler.
func (s *scenario) counted(want map[string]float64) {
	s.Helper()
	n := own(s.stats)
	for name, v := range want {
		if n[name] != v {
			s.Errorf("%s is %v, want %v", name, n[name], v)
		}
	}
}

// constants is a Collector of constant metrics.
type constants func() []prometheus.Metric

// Describe implements prometheus.Collector.
func (constants) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (y constants) Collect(to chan<- prometheus.Metric) {
	for _, m := range y() {
		to <- m
	}
}

var sent = prometheus.NewDesc("sent_total", "x", []string{"queue"}, nil)

// A Collector returns nothing until its backend responds. The first sample does not include the counts that the backend
// already had.
func TestDelayedBackend(t *testing.T) {
	registry, answers, total := prometheus.NewRegistry(), false, 5e8
	registry.MustRegister(constants(func() (all []prometheus.Metric) {
		if answers {
			all = append(all, prometheus.MustNewConstMetric(sent, prometheus.CounterValue, total, "a"))
		}
		return all
	}))
	run(t, registry, sampler.Options{}, func(s *scenario) {
		s.pass(3)
		s.second(func() { answers = true })
		s.second(func() { total += 7 })
		s.want(`sent_total queue="a"`, 0, "- - - - 7")
		s.counted(map[string]float64{"unplaced_increases_total": 1, "missed_seconds_total": 0})
	})
}

// A new label value of an existing family has its first second. In an empty family, or in a family that failed, it has
// no first second.
func TestNewCountersWithoutCreatedTimestamp(t *testing.T) {
	registry := prometheus.NewRegistry()
	var queues []string
	var broken error
	registry.MustRegister(constants(func() (all []prometheus.Metric) {
		for _, q := range queues {
			all = append(all, prometheus.MustNewConstMetric(sent, prometheus.CounterValue, 30, q))
		}
		if broken != nil {
			all = append(all, prometheus.NewInvalidMetric(sent, broken))
		}
		return all
	}))
	run(t, registry, sampler.Options{}, func(s *scenario) {
		add := func(q string) func() { return func() { queues = append(queues, q) } }
		s.pass(1)
		s.second(add("first"))
		s.second(add("second"))
		s.second(func() { broken = errors.New("no connection") })
		s.second(add("third"), func() { broken = nil })
		s.want(`sent_total queue="first"`, 0, "- - 0 0 0")
		s.want(`sent_total queue="second"`, 0, "- - 30 0 0")
		s.want(`sent_total queue="third"`, 0, "- - - - -")
		s.counted(map[string]float64{"unplaced_increases_total": 2, "errors_total": 1})
	})
}

// A counter that was created an hour ago and is gathered for the first time has no peak with an hour of counts, for any
// previous result of its Gatherer.
func TestOldCounterGatheredLate(t *testing.T) {
	registry, total := prometheus.NewRegistry(), 1e9
	other := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "other_total", Help: "x"}, []string{"l"})
	registry.MustRegister(other)
	run(t, registry, sampler.Options{}, func(s *scenario) {
		hourAgo := s.begin.Add(-time.Hour)
		s.pass(2)
		s.second(func() {
			registry.MustRegister(constants(func() []prometheus.Metric {
				return []prometheus.Metric{prometheus.MustNewConstMetricWithCreatedTimestamp(sent,
					prometheus.CounterValue, total, hourAgo, "a")}
			}))
			other.WithLabelValues("new").Add(3)
		})
		s.second(func() { total += 4 })
		s.want(`sent_total queue="a"`, 0, "- - - 4")
		s.want(`other_total l="new"`, 0, "- - 3 0")
		s.counted(map[string]float64{"unplaced_increases_total": 1})
	})
}

// The earlier total of a counter never counts as an increase, no matter how long the counter was not gathered. This
// holds even if the counter or its family was removed in the meantime.
func TestCounterReturns(t *testing.T) {
	for _, away := range []int{1, 599, 601, 605, 1300} {
		for _, stamped := range []bool{false, true} {
			for _, alone := range []bool{false, true} {
				t.Run(fmt.Sprint(away, stamped, alone), func(t *testing.T) {
					total, shown := 1e6, true
					registry := prometheus.NewRegistry()
					run(t, registry, sampler.Options{}, func(s *scenario) {
						began := time.Now()
						counter := func(v float64, queue string) prometheus.Metric {
							if stamped {
								return prometheus.MustNewConstMetricWithCreatedTimestamp(sent,
									prometheus.CounterValue, v, began, queue)
							}
							return prometheus.MustNewConstMetric(sent, prometheus.CounterValue, v, queue)
						}
						registry.MustRegister(constants(func() (all []prometheus.Metric) {
							if shown {
								all = append(all, counter(total, "a"))
							}
							if !alone || shown && s.seconds == away+4 {
								all = append(all, counter(1, "b"))
							}
							return all
						}))
						s.pass(2)
						s.second(func() { shown = false })
						s.pass(away - 1)
						s.second(func() { shown, total = true, total+1 })
						s.second(func() { total += 2 })
						s.want(`sent_total queue="a"`, away+2, "- 2")
						if n := own(s.stats)["unplaced_increases_total"]; n == 0 {
							s.Error("an increase is absent but not counted")
						}
					})
				})
			}
		}
	}
}

// A counter that is created again within a second counts from zero, as its created timestamp shows, whether its new
// total is higher or lower.
func TestCounterCreatedAgain(t *testing.T) {
	for _, then := range []float64{30, 100, 150} {
		registry := prometheus.NewRegistry()
		counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x_total", Help: "x"}, []string{"l"})
		observed := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "h", Help: "x"}, []string{"l"})
		registry.MustRegister(counter, observed)
		run(t, registry, sampler.Options{}, func(s *scenario) {
			s.second(func() { counter.WithLabelValues("a").Add(100); observed.WithLabelValues("a").Observe(100) })
			s.second(func() {
				counter.Reset()
				observed.Reset()
				counter.WithLabelValues("a").Add(then)
				observed.WithLabelValues("a").Observe(then)
			})
			s.pass(1)
			s.want(`x_total l="a"`, 0, fmt.Sprint("100 ", then, " 0"))
			s.want(`h_sum l="a"`, 0, fmt.Sprint("100 ", then, " 0"))
			s.want(`h_count l="a"`, 0, "1 1 0")
		})
	}
}

// A counter that decreases without a new created timestamp has no increase.
func TestCounterDecreases(t *testing.T) {
	total := 1e9
	registry := prometheus.NewRegistry()
	registry.MustRegister(constants(func() []prometheus.Metric {
		return []prometheus.Metric{prometheus.MustNewConstMetric(sent, prometheus.CounterValue, total, "a")}
	}), prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "f_total", Help: "x"}, func() float64 { return total }))
	run(t, registry, sampler.Options{}, func(s *scenario) {
		s.pass(1)
		s.second(func() { total-- })
		s.second(func() { total++ })
		s.want(`sent_total queue="a"`, 0, "0 - 1")
		s.want(`f_total`, 0, "0 - 1")
		s.counted(map[string]float64{"unplaced_increases_total": 2})
	})
}

// Counters that are created while their vector is not registered do not appear a second late.
func TestCountersCreatedWhileUnregistered(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x_total", Help: "x"}, []string{"l"})
	registry.MustRegister(counter)
	run(t, registry, sampler.Options{}, func(s *scenario) {
		s.second(func() { counter.WithLabelValues("a").Add(1) })
		s.second(func() { registry.Unregister(counter); counter.WithLabelValues("b").Add(400) })
		s.second(func() { registry.MustRegister(counter); counter.WithLabelValues("c").Add(5) })
		s.second(func() { counter.WithLabelValues("b").Add(2) })
		s.want(`x_total l="a"`, 0, "1 - - 0")
		s.want(`x_total l="b"`, 0, "- - - 2")
		s.want(`x_total l="c"`, 0, "- - 5 0")
	})
}

// slow is a Gatherer with delays: each call uses the next delay of the list.
type slow struct {
	prometheus.Gatherer
	takes []time.Duration
	calls int
}

// Gather implements prometheus.Gatherer.
func (g *slow) Gather() ([]*dto.MetricFamily, error) {
	time.Sleep(g.takes[g.calls%len(g.takes)])
	g.calls++
	return g.Gatherer.Gather()
}

// A created timestamp in the future is ignored, even after that time.
func TestCreatedTimestampInTheFuture(t *testing.T) {
	registry, total, shown := prometheus.NewRegistry(), 1e9, true
	run(t, registry, sampler.Options{}, func(s *scenario) {
		at := s.begin.Add(3500 * time.Millisecond)
		registry.MustRegister(constants(func() (all []prometheus.Metric) {
			if shown {
				all = append(all, prometheus.MustNewConstMetricWithCreatedTimestamp(sent,
					prometheus.CounterValue, total, at, "a"))
			}
			return all
		}))
		s.second()
		s.second(func() { total += 3 })
		s.second(func() { shown = false })
		s.second(func() { shown = true })
		s.second(func() { total += 4 })
		s.want(`sent_total queue="a"`, 0, "- 3 - - 4")
	})
}

// Counters that are created after a second, during the gathering of the second, belong to the next second.
func TestCountersCreatedWhileGathering(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x_total", Help: "x"}, []string{"l"})
	observed := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "h", Help: "x"}, []string{"l"})
	registry.MustRegister(counter, observed)
	run(t, &slow{registry, []time.Duration{200 * time.Millisecond}, 0}, sampler.Options{}, func(s *scenario) {
		s.pass(1)
		time.Sleep(600 * time.Millisecond)
		counter.WithLabelValues("a").Add(400)
		observed.WithLabelValues("a").Observe(3)
		s.pass(2)
		s.want(`x_total l="a"`, 0, "- 400 0")
		s.want(`h_count l="a"`, 0, "- 1 0")
		s.want(`h_sum l="a"`, 0, "- 3 0")
		s.counted(map[string]float64{"unplaced_increases_total": 0})
	})
}

// Seconds without a gathering, because the process stalled, are counted, whether or not a consumer observed them
// before.
func TestMissedSeconds(t *testing.T) {
	for _, noticed := range []bool{false, true} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		s, err := sampler.New(c, sampler.Options{
			Gatherer: prometheus.Gatherers{prometheus.NewRegistry(), prometheus.NewRegistry()},
			MaxDelay: 500 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Sample()
		now = now.Add(10 * time.Second)
		if noticed {
			line := c.Timeline()
			open := line.At(line.Now()).Index
			if sealed := s.Stream().Sealed(open); sealed != open-1 {
				t.Errorf("sealed before %d, want %d", sealed, open-1)
			}
		}
		s.Sample()
		// Per Gatherer: nine seconds without a gathering, and one without a total at its start.
		if got := own(c)["missed_seconds_total"]; got != 2*10 {
			t.Errorf("noticed %t: %v missed seconds, want 20", noticed, got)
		}
	}
}

// A slow Gatherer moves no increases into a neighboring second, neither its own nor increases of another Gatherer.
func TestSlowGathererNextToAnother(t *testing.T) {
	a, b := prometheus.NewRegistry(), prometheus.NewRegistry()
	slowly := prometheus.NewCounter(prometheus.CounterOpts{Name: "a_total", Help: "x"})
	other := prometheus.NewCounter(prometheus.CounterOpts{Name: "b_total", Help: "x"})
	a.MustRegister(slowly)
	b.MustRegister(other)
	g := &slow{a, []time.Duration{0, 0, 0, 800 * time.Millisecond, 0, 0}, 0}
	run(t, prometheus.Gatherers{g, prometheus.Gatherers{b}}, sampler.Options{}, func(s *scenario) {
		for range 6 {
			s.second(func() { slowly.Add(400); other.Add(400) })
		}
		s.want("a_total", 0, "400 400 - - 400 400")
		s.want("b_total", 0, "400 400 400 400 400 400")
		s.counted(map[string]float64{"missed_seconds_total": 2, "late_total": 1, "errors_total": 0})
	})
}

// Every lost second is counted. A failed gathering costs its own second and the next one. A slow gathering also costs
// the seconds that it covers.
func TestLostSecondsAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		g    func(r *prometheus.Registry) prometheus.Gatherer
		want string
		lost float64
	}{
		"one fails": {func(r *prometheus.Registry) prometheus.Gatherer {
			calls := 0
			return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
				if calls++; calls == 4 {
					return nil, errors.New("broken")
				}
				return r.Gather()
			})
		}, "1 1 - - 1 1 1 1", 2},
		"one ends its goroutine": {func(r *prometheus.Registry) prometheus.Gatherer {
			calls := 0
			return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
				if calls++; calls == 4 {
					runtime.Goexit()
				}
				return r.Gather()
			})
		}, "1 1 - - 1 1 1 1", 2},
		"every fourth takes 1.2 s": {func(r *prometheus.Registry) prometheus.Gatherer {
			return &slow{r, []time.Duration{0, 0, 0, 1200 * time.Millisecond}, 0}
		}, "1 1 - - - 1 1 -", 4},
		"each takes 1.2 s": {func(r *prometheus.Registry) prometheus.Gatherer {
			return &slow{r, []time.Duration{1200 * time.Millisecond}, 0}
		}, "- - - - - - - -", 9}, // including the second with the begin of the sampling
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "x_total", Help: "x"})
			registry.MustRegister(counter)
			run(t, test.g(registry), sampler.Options{}, func(s *scenario) {
				for range 8 {
					s.second(counter.Inc)
				}
				s.want("x_total", 0, test.want)
				s.counted(map[string]float64{"missed_seconds_total": test.lost})
				if n := strings.Count(s.log.String(), "level=ERROR"); n != 1 {
					t.Errorf("logged %d times", n)
				}
			})
		})
	}
}

// Ambiguous series are omitted: a series that a Gatherer returns twice, and a series of two Gatherers.
func TestDuplicateSeries(t *testing.T) {
	var a, b []float64
	family := func(values ...float64) []*dto.MetricFamily {
		f := &dto.MetricFamily{Name: proto.String("x_total"), Type: dto.MetricType_COUNTER.Enum()}
		for i := range values {
			f.Metric = append(f.Metric, &dto.Metric{Counter: &dto.Counter{Value: &values[i]}})
		}
		return []*dto.MetricFamily{f}
	}
	first := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return family(a...), nil })
	second := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return family(b...), nil })
	run(t, prometheus.Gatherers{first, second}, sampler.Options{}, func(s *scenario) {
		s.second(func() { a = []float64{1} })
		s.second(func() { a = []float64{3} })
		s.second(func() { a = []float64{4, 1e6} })
		s.second(func() { a = []float64{2e6, 5} })
		s.second(func() { a = []float64{3e6}; b = []float64{1e9} })
		s.second(func() { a[0]++ })
		s.second(func() { a = nil })
		s.second(func() { a = []float64{9} })
		s.second(func() { a = []float64{11} })
		s.want("x_total", 0, "- 2 - - - 1 - - 2")
		s.counted(map[string]float64{"left_out_series": 1})
	})
}

// The ending of increases never makes two metrics one, not even if their labels differ.
func TestSharedNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	x := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	registry.MustRegister(x, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "x_increase", ConstLabels: prometheus.Labels{"a": "1"},
	}))
	run(t, registry, sampler.Options{}, func(s *scenario) {
		s.second()
		s.second(x.Inc)
		s.pass(1)
		s.want("x", 0, "0 1 0")
		s.counted(map[string]float64{"series": 1, "left_out_series": 1})
	})
}

// Labels that no server accepts are omitted, even if other series look similar. Names of UTF-8 are sampled.
func TestOmittedLabels(t *testing.T) {
	total := 1.0
	metric := func(labels ...string) *dto.Metric {
		m := &dto.Metric{Counter: &dto.Counter{Value: proto.Float64(total)}}
		for i := 0; i < len(labels); i += 2 {
			m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
		}
		return m
	}
	g := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return []*dto.MetricFamily{{Name: proto.String("x_total"), Metric: []*dto.Metric{
			metric("a", "1", "b", "2"), metric("a", "1\x00b\x002"), // different labels
			metric("b", "3", "a", "4"), metric("a", "5", "b", ""), // unsorted; with an empty label
			metric("a", "1\xffb\xff2"), metric("a", "1", "a", "2"), metric("a.b", "1"), metric("__name__", "1"),
			metric("\xff", "1"),
		}}, {Name: proto.String("with.dots"), Metric: []*dto.Metric{metric()}}}, nil
	})
	run(t, g, sampler.Options{}, func(s *scenario) {
		s.second(func() { total++ })
		s.pass(1)
		for _, key := range []string{
			`x_total a="1" b="2"`, `x_total a="1\x00b\x002"`, `x_total a="4" b="3"`,
			`x_total a="5"`, `x_total a.b="1"`, `with.dots`,
		} {
			s.want(key, 0, "1 0")
		}
		s.counted(map[string]float64{"series": 6, "left_out_series": 4})
		if len(s.all) != 6 {
			s.Errorf("%v", s.all)
		}
	})
}

// Samples with a timestamp and values that are not numbers are in no second.
func TestOmittedValues(t *testing.T) {
	registry := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g", Help: "x"})
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "c_total", Help: "x"})
	timed := 5.0
	registry.MustRegister(gauge, counter, constants(func() []prometheus.Metric {
		m := prometheus.MustNewConstMetric(sent, prometheus.CounterValue, timed, "a")
		if timed < 10 {
			m = prometheus.NewMetricWithTimestamp(time.Unix(1, 0), m)
		}
		return []prometheus.Metric{m, prometheus.MustNewConstMetric(sent, prometheus.CounterValue, 1, "b")}
	}))
	bars := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return []*dto.MetricFamily{{
			Name: proto.String("bars"), Type: dto.MetricType_GAUGE_HISTOGRAM.Enum(),
			Metric: []*dto.Metric{
				{Histogram: &dto.Histogram{SampleCount: proto.Uint64(3)}},
			},
		}}, nil
	})
	run(t, prometheus.Gatherers{registry, bars}, sampler.Options{}, func(s *scenario) {
		s.second(func() { gauge.Set(1); counter.Add(1) })
		s.second(func() { gauge.Set(math.NaN()); counter.Add(2) })
		s.counted(map[string]float64{"left_out_series": 2})
		s.second(func() { gauge.Set(math.Inf(1)); counter.Add(math.Inf(1)) })
		s.second(func() { gauge.Set(2); counter.Add(1); timed = 10 })
		s.second(func() { timed = 13 })
		s.want("g", 0, "1 - +Inf 2 2")
		s.want("c_total", 0, "1 2 - - -")
		s.want(`sent_total queue="a"`, 0, "- - - - 3")
		s.want("bars_count", 0, "- - - - -")
		s.want("bars", 0, "- - - - -")
		s.counted(map[string]float64{"left_out_series": 1})
	})
}

// Series above the limit are counted, and logged once. They have no peak when they are accepted later.
func TestMaxSeriesIsLoggedOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	queues := []string{"a", "b", "c"}
	registry.MustRegister(constants(func() (all []prometheus.Metric) {
		for _, q := range queues {
			all = append(all, prometheus.MustNewConstMetric(sent, prometheus.CounterValue, 1e6, q))
		}
		return all
	}))
	run(t, registry, sampler.Options{MaxSeries: 2}, func(s *scenario) {
		s.pass(3)
		s.counted(map[string]float64{"series": 2, "left_out_series": 1})
		s.second(func() { queues = []string{"b", "d"} })
		s.pass(700)
		s.counted(map[string]float64{"series": 2, "left_out_series": 0})
		s.second(func() { queues = []string{"b", "e"} })
		s.pass(700)
		for _, q := range []string{"c", "d", "e"} {
			for at, v := range s.all[fmt.Sprintf("sent_total queue=%q", q)] {
				if v != 0 {
					s.Errorf("%s has %v in second %d", q, v, at)
				}
			}
		}
		if n := strings.Count(s.log.String(), "MaxSeries=2"); n != 1 {
			s.Errorf("logged %d times:\n%s", n, &s.log)
		}
	})
}

// A missing Gatherer is an error at any level of nesting.
func TestNoGatherer(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	for _, g := range []prometheus.Gatherer{
		nil,
		prometheus.Gatherers{},
		prometheus.Gatherers{registry, nil},
		prometheus.Gatherers{prometheus.Gatherers{nil}},
	} {
		_, err := sampler.New(c, sampler.Options{Gatherer: g})
		if err == nil || !strings.Contains(err.Error(), "no Gatherer") {
			t.Errorf("%v: %v", g, err)
		}
	}
}
