package prom_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/windowstat/windowstat/exporter/sampler"
)

// broken is a prometheus.Collector that always fails.
type broken struct{}

func (broken) Describe(chan<- *prometheus.Desc) {}

func (broken) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "x", nil, nil), errors.New("no connection"))
}

// queues is a prometheus.Collector with one counter per queue. The counters have no created timestamps.
type queues struct{ names []string }

func (*queues) Describe(chan<- *prometheus.Desc) {}

func (q *queues) Collect(ch chan<- prometheus.Metric) {
	desc := prometheus.NewDesc("sent_total", "x", []string{"queue"}, nil)
	for _, name := range q.names {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, 30, name)
	}
}

// New series have samples from their first second on, even next to client_golang's own collectors: ten new paths with a
// hundred requests each, the first forty errors of a service, and a thousand durations.
func TestFirstSecondOfANewLabelValue(t *testing.T) {
	for name, more := range map[string]struct {
		collectors []prometheus.Collector
		left       float64
	}{
		"with the Go runtime and the process": {[]prometheus.Collector{
			collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		}, 0},
		"with a name of UTF-8": {[]prometheus.Collector{
			prometheus.NewCounter(prometheus.CounterOpts{Name: "with.dots_total", Help: "x"}),
		}, 0},
		"with a collector that always fails": {[]prometheus.Collector{
			broken{}, prometheus.NewGauge(prometheus.GaugeOpts{Name: "length", Help: "x"}),
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			registry, sent := prometheus.NewRegistry(), &queues{names: []string{"letters"}}
			registry.MustRegister(append(more.collectors, sent)...)
			s := newSampling(t, registry, sampler.Options{})
			requests := prometheus.NewCounterVec(
				prometheus.CounterOpts{Name: "requests_total", Help: "x"},
				[]string{"path", "code"},
			)
			durations := prometheus.NewHistogramVec(
				prometheus.HistogramOpts{Name: "duration_seconds", Help: "x"},
				[]string{"path"},
			)
			sizes := prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: "size_bytes", Help: "x"}, []string{"path"})
			registry.MustRegister(requests, durations, sizes)
			requests.WithLabelValues("/", "200").Add(7)
			s.second()
			want := []string{`requests_total_increase{code="200",path="/"} 7 45000`}
			sent.names = append(sent.names, "mails")
			if name != "with a collector that always fails" {
				want = append(want, `sent_total_increase{queue="mails"} 30 46000`)
			}
			for i := range 10 {
				path := fmt.Sprint("/", i)
				for range 100 {
					requests.WithLabelValues(path, "200").Inc()
					durations.WithLabelValues(path).Observe(0.5)
					sizes.WithLabelValues(path).Observe(2)
				}
				want = append(want,
					fmt.Sprintf(`requests_total_increase{code="200",path="%s"} 100 46000`, path),
					fmt.Sprintf(`duration_seconds_count_increase{path="%s"} 100 46000`, path),
					fmt.Sprintf(`duration_seconds_sum_increase{path="%s"} 50 46000`, path),
					fmt.Sprintf(`size_bytes_count_increase{path="%s"} 100 46000`, path),
					fmt.Sprintf(`size_bytes_sum_increase{path="%s"} 200 46000`, path),
				)
			}
			s.second()
			requests.WithLabelValues("/", "500").Add(40)
			s.second()
			want = append(want, `requests_total_increase{code="500",path="/"} 40 47000`)
			got := strings.Split(s.lines(""), "\n")
			for _, line := range want {
				if !slices.Contains(got, line) {
					t.Errorf("%s is not on the page", line)
				}
			}
			if t.Failed() {
				t.Log(s.lines("metric=persecond_requests_total_increase"))
			}
			if left := s.own("sampler_left_out_series"); left != more.left {
				t.Errorf("%v omitted series, want %v", left, more.left)
			}
			if name != "with the Go runtime and the process" {
				return
			}
			for _, metric := range []string{
				"go_memstats_alloc_bytes", "go_memstats_alloc_bytes_total_increase",
				"process_cpu_seconds_total_increase",
			} {
				if rec := s.get("metric=persecond_" + metric); rec.Code != http.StatusOK ||
					!strings.Contains(rec.Body.String(), "\npersecond_"+metric+" ") {
					t.Errorf("%s: %d %s", metric, rec.Code, rec.Body)
				}
			}
		})
	}
}

// own returns the value of a self-metric of the Sampler.
func (s sampling) own(name string) (value float64) {
	for _, m := range s.stats.Metrics() {
		if m.Name == name {
			m.Each(func(v float64, _ ...string) { value = v })
		}
	}
	return value
}

// metricOf returns the metric of a counter as client_golang exports it.
func metricOf(t *testing.T, c prometheus.Counter) *dto.Metric {
	t.Helper()
	m := &dto.Metric{}
	if err := c.Write(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// counters returns a family of counters.
func counters(name string, metrics ...*dto.Metric) *dto.MetricFamily {
	return &dto.MetricFamily{
		Name:   proto.String(name),
		Help:   proto.String("x"),
		Type:   dto.MetricType_COUNTER.Enum(),
		Metric: metrics,
	}
}

// Increases before the first sample of a counter are in no second. If the previous second was not sampled, their second
// is unknown, and an earlier created timestamp does not reveal it.
func TestIncreasesBeforeTheFirstSample(t *testing.T) {
	partly := errors.New("a part is broken")
	steps := map[string]struct {
		before func(s sampling, g *fakeGatherer) // before the counter is created
		after  func(s sampling, g *fakeGatherer) // after the counter is created, before it is on the page
		want   string
	}{
		"the second before was missed": {
			before: func(s sampling, g *fakeGatherer) { *s.now = s.now.Add(1e9) },
			want:   "x_total_increase 0 47000\n",
		},
		"the second before failed": {
			before: func(s sampling, g *fakeGatherer) {
				g.do = func() ([]*dto.MetricFamily, error) { return nil, partly }
				s.second()
			},
			want: "x_total_increase 5 46000\nx_total_increase 0 47000\n", // the counter was created after the failure
		},
		"the second before failed in part": {
			before: func(s sampling, g *fakeGatherer) {
				g.do = func() ([]*dto.MetricFamily, error) { return []*dto.MetricFamily{counters("y_total")}, partly }
				s.second()
			},
			want: "x_total_increase 5 46000\nx_total_increase 0 47000\n",
		},
		"the counter was created, and its collector failed": {
			after: func(s sampling, g *fakeGatherer) {
				g.do = func() ([]*dto.MetricFamily, error) { return []*dto.MetricFamily{counters("y_total")}, partly }
				s.second()
			},
			want: "x_total_increase 0 47000\n",
		},
		"the name was a gauge before": {
			before: func(s sampling, g *fakeGatherer) {
				gauge := &dto.MetricFamily{
					Name:   proto.String("x_total"),
					Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: proto.Float64(1)}}},
				}
				g.do = func() ([]*dto.MetricFamily, error) { return []*dto.MetricFamily{gauge}, nil }
				s.second()
			},
			want: "x_total_increase 5 46000\nx_total_increase 0 47000\n", // the names differ
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			g := &fakeGatherer{func() ([]*dto.MetricFamily, error) { return nil, nil }}
			s := newSampling(t, g, sampler.Options{})
			if step.before != nil {
				step.before(s, g)
			}
			x := prometheus.NewCounter(prometheus.CounterOpts{Name: "x_total", Help: "x"})
			x.Add(5)
			if step.after != nil {
				step.after(s, g)
			}
			g.do = func() ([]*dto.MetricFamily, error) {
				return []*dto.MetricFamily{counters("x_total", metricOf(t, x))}, nil
			}
			s.second()
			s.second()
			if got := s.lines("metric=persecond_x_total_increase"); got != step.want {
				t.Errorf("got\n%swant\n%s", got, step.want)
			}
		})
	}
}

// A counter that replaces a gauge of the same name has increases from its second second on. Its first total is none.
func TestCounterReplacesGauge(t *testing.T) {
	gauge := &dto.MetricFamily{
		Name:   proto.String("x"),
		Type:   dto.MetricType_GAUGE.Enum(),
		Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: proto.Float64(1)}}},
	}
	family := gauge
	g := &fakeGatherer{func() ([]*dto.MetricFamily, error) { return []*dto.MetricFamily{family}, nil }}
	s := newSampling(t, g, sampler.Options{})
	s.second()
	total := 1e6
	for range 3 {
		total++
		family = counters("x", &dto.Metric{Counter: &dto.Counter{Value: &total}})
		s.second()
	}
	if got, want := s.lines(""), "x 1 45000\nx_increase 1 47000\nx_increase 1 48000\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A label value that was removed and created again begins with zero, and its first second has a sample. A label value
// that was only hidden for a while does not count as new.
func TestLabelValueReturns(t *testing.T) {
	g := &fakeGatherer{func() ([]*dto.MetricFamily, error) { return nil, nil }}
	s := newSampling(t, g, sampler.Options{})
	removed := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "removed_total", Help: "x"}, []string{"l"})
	hidden := prometheus.NewCounter(prometheus.CounterOpts{Name: "hidden_total", Help: "x"})
	shown := true
	g.do = func() ([]*dto.MetricFamily, error) {
		registry := prometheus.NewRegistry()
		registry.MustRegister(removed)
		if shown {
			registry.MustRegister(hidden)
		}
		return registry.Gather()
	}
	hidden.Add(3)
	removed.WithLabelValues("a").Add(3)
	s.second()
	shown = false
	removed.Reset()
	s.second()
	shown = true
	removed.WithLabelValues("a").Add(9)
	hidden.Add(9)
	s.second()
	s.second()
	const want = `hidden_total_increase 3 45000
hidden_total_increase 0 48000
removed_total_increase{l="a"} 3 45000
removed_total_increase{l="a"} 9 47000
removed_total_increase{l="a"} 0 48000
`
	if got := s.lines(""); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
