package prom_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// sampling is a service that counts with client_golang and has a Sampler. The test moves its clock.
type sampling struct {
	scraper
	*prometheus.Registry
	sampler *sampler.Sampler
	stats   *collector.Collector
	now     *time.Time
}

func newSampling(t *testing.T, g prometheus.Gatherer, o sampler.Options) sampling {
	t.Helper()
	c, now := service(t, collector.Options{})
	registry := prometheus.NewRegistry()
	if g == nil {
		g = registry
	}
	// The maximum delay, because gathering takes real time, and the machine may be busy.
	o.Gatherer, o.Logger, o.MaxDelay = g, slog.New(slog.DiscardHandler), 500*ms
	s, err := sampler.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	s.Sample()
	return sampling{newScraper(t, c, prom.SecondsOptions{Sampler: s}), registry, s, c, now}
}

// second ends a second and samples it.
func (s sampling) second() {
	*s.now = s.now.Add(time.Second)
	s.sampler.Sample()
}

// lines returns the samples on the page, without the common prefix of the timestamps.
func (s sampling) lines(query string) string {
	var b strings.Builder
	for line := range strings.Lines(s.get(query).Body.String()) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString(strings.Replace(strings.TrimPrefix(line, "persecond_"), "17673230", "", 1))
		}
	}
	return b.String()
}

func TestSampler(t *testing.T) {
	s := newSampling(t, nil, sampler.Options{})
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total", Help: "x"}, []string{"code"})
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "length", Help: "x"})
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "rt_seconds", Help: "x"})
	summary := prometheus.NewSummary(prometheus.SummaryOpts{Name: "size_bytes", Help: "x"})
	s.MustRegister(counter, gauge, histogram, summary)
	s.second() // the first second with these metrics
	counter.WithLabelValues("200").Add(5)
	gauge.Set(3)
	histogram.Observe(0.5)
	s.second()
	counter.WithLabelValues("200").Add(2)
	counter.WithLabelValues("a\n\"b").Add(1000) // a new label value
	gauge.Set(-1.5)
	summary.Observe(4)
	summary.Observe(8)
	s.second()
	counter.Reset() // as if the service had restarted
	counter.WithLabelValues("200").Add(1)
	s.second()
	const want = `length 0 45000
length 3 46000
length -1.5 47000
length -1.5 48000
requests_total_increase{code="200"} 5 46000
requests_total_increase{code="200"} 2 47000
requests_total_increase{code="200"} 1 48000
requests_total_increase{code="a\n\"b"} 1000 47000
rt_seconds_count_increase 0 45000
rt_seconds_count_increase 1 46000
rt_seconds_count_increase 0 47000
rt_seconds_count_increase 0 48000
rt_seconds_sum_increase 0 45000
rt_seconds_sum_increase 0.5 46000
rt_seconds_sum_increase 0 47000
rt_seconds_sum_increase 0 48000
size_bytes_count_increase 0 45000
size_bytes_count_increase 0 46000
size_bytes_count_increase 2 47000
size_bytes_count_increase 0 48000
size_bytes_sum_increase 0 45000
size_bytes_sum_increase 0 46000
size_bytes_sum_increase 12 47000
size_bytes_sum_increase 0 48000
`
	if got := s.lines(""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := s.lines("metric=persecond_length&window=1s"); got != "length -1.5 48000\n" {
		t.Errorf("one metric: %s", got)
	}
	if got := s.lines("resource=a"); got != "" {
		t.Errorf("samples of a resource: %s", got)
	}
	if rec := s.get("metric=persecond_nothing"); rec.Code != 400 {
		t.Errorf("unknown metric: status %d", rec.Code)
	}
}

// Each second of a scraper has the value that was added in the second. No second is skipped because it has not been
// sampled yet.
func TestSamplerMatchesOracle(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	s := newSampling(t, nil, sampler.Options{})
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "x_total", Help: "x"})
	s.MustRegister(counter)
	s.second()
	got, want := map[string]float64{}, map[string]float64{}
	collect := func() {
		for line := range strings.Lines(s.get("cursor=a").Body.String()) {
			if rest, ok := strings.CutPrefix(line, "persecond_x_total_increase "); ok {
				var v float64
				var at int64
				if _, err := fmt.Sscan(rest, &v, &at); err != nil {
					t.Fatal(err)
				}
				key := fmt.Sprint(at / 1000)
				if _, twice := got[key]; twice {
					t.Fatalf("duplicate second %s", key)
				}
				got[key] = v
			}
		}
	}
	want[fmt.Sprint(s.now.Unix()-1)] = 0
	collect()
	delete(want, fmt.Sprint(s.now.Unix()-1))
	clear(got)
	for range 300 {
		n := random.IntN(50)
		counter.Add(float64(n))
		at := fmt.Sprint(s.now.Unix())
		*s.now = s.now.Add(time.Second)
		if random.IntN(3) == 0 {
			collect() // before the second is sampled
		}
		switch random.IntN(10) {
		case 0: // missed: the increase belongs to this second and the next one
			*s.now = s.now.Add(time.Second)
			s.sampler.Sample()
		default:
			s.sampler.Sample()
			want[at] = float64(n)
		}
		if random.IntN(3) == 0 {
			collect()
		}
	}
	collect()
	for at, v := range got {
		if w, ok := want[at]; !ok || w != v {
			t.Errorf("second %s has %v, want %v (%t)", at, v, w, ok)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d seconds, want %d", len(got), len(want))
	}
}

// fakeGatherer is a Gatherer whose result the test sets.
type fakeGatherer struct {
	do func() ([]*dto.MetricFamily, error)
}

func (g *fakeGatherer) Gather() ([]*dto.MetricFamily, error) { return g.do() }

// A Gatherer that fails, panics or blocks affects only the seconds concerned.
func TestSamplerWithGathererErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		registry := prometheus.NewRegistry()
		counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "x_total", Help: "x"})
		registry.MustRegister(counter)
		g := &fakeGatherer{registry.Gather}
		s, err := sampler.New(c, sampler.Options{Gatherer: g, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s.Sample()
		read := newScraper(t, c, prom.SecondsOptions{Sampler: s})
		began := time.Now().Unix()
		second := func(do func() ([]*dto.MetricFamily, error)) {
			counter.Inc()
			g.do = do
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			s.Sample()
			synctest.Wait()
		}
		second(registry.Gather)
		second(func() ([]*dto.MetricFamily, error) { return nil, errors.New("broken") })
		second(registry.Gather) // the increase belongs to two seconds
		second(func() ([]*dto.MetricFamily, error) { panic("oh") })
		second(registry.Gather)
		second(func() ([]*dto.MetricFamily, error) { // some of the families
			f, _ := registry.Gather()
			return f, errors.New("partly broken")
		})
		second(func() ([]*dto.MetricFamily, error) { // longer than MaxDelay
			time.Sleep(500 * ms)
			return registry.Gather()
		})
		second(registry.Gather)
		second(registry.Gather)
		second(func() ([]*dto.MetricFamily, error) { // within MaxDelay
			time.Sleep(200 * ms)
			return registry.Gather()
		})
		var got, want []string
		for line := range strings.Lines(read.get("").Body.String()) {
			if strings.HasPrefix(line, "persecond_x_total_increase") {
				got = append(got, line)
			}
		}
		for _, i := range []int64{0, 5, 8, 9} {
			want = append(want, fmt.Sprintf("persecond_x_total_increase 1 %d000\n", began+i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		n := map[string]float64{}
		for _, m := range c.Metrics() {
			m.Each(func(v float64, _ ...string) { n[m.Name] = v })
		}
		if n["sampler_errors_total"] != 3 || n["sampler_missed_seconds_total"] != 6 || n["sampler_late_total"] != 1 {
			t.Errorf("%v", n)
		}
	})
}

// A Gatherer that never returns blocks neither the end of Run nor a page.
func TestSamplerWithABlockedGatherer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		free := make(chan struct{})
		g := &fakeGatherer{func() ([]*dto.MetricFamily, error) { <-free; return nil, nil }}
		s, err := sampler.New(c, sampler.Options{Gatherer: g})
		if err != nil {
			t.Fatal(err)
		}
		read := newScraper(t, c, prom.SecondsOptions{Sampler: s})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		c.Resource("a")
		time.Sleep(10*time.Second + 100*ms)
		if n := len(read.seconds("cursor=x", "persecond_pass")); n != 10 {
			t.Errorf("%d seconds", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		close(free)
	})
}

// The Sampler omits and counts series beyond the limit.
func TestSamplerOmitsSeries(t *testing.T) {
	s := newSampling(t, nil, sampler.Options{MaxSeries: 4})
	s.MustRegister(
		prometheus.NewCounter(prometheus.CounterOpts{Name: "x_total", Help: "x"}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "x", Help: "x"}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "z1", Help: "new\nline"}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "z2", Help: "x"}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "z3", Help: "x"}),
	)
	s.second()
	if got, want := s.lines(""), "x 0 45000\nx_total_increase 0 45000\nz1 0 45000\nz2 0 45000\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	n := map[string]float64{}
	for _, m := range s.stats.Metrics() {
		m.Each(func(v float64, _ ...string) { n[m.Name] = v })
	}
	if n["sampler_left_out_series"] != 1 || n["sampler_series"] != 4 {
		t.Errorf("%v", n)
	}
	c, _ := service(t, collector.Options{})
	if _, err := sampler.New(nil, sampler.Options{Prefix: "a-", MaxSeries: -1, MaxDelay: time.Second}); err == nil ||
		strings.Count(err.Error(), "\n") != 4 {
		t.Error(err)
	}
	if _, err := sampler.New(c, sampler.Options{Gatherer: prometheus.DefaultGatherer}); err != nil {
		t.Error(err)
	}
}

// The Sampler assumes that a new counter was zero before only if the previous gathering was complete.
func TestSamplerHasNoFalsePeaks(t *testing.T) {
	newCounter := func(name string, total float64) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: "x"})
		c.Add(total)
		return c
	}
	t.Run("the first gathering fails", func(t *testing.T) {
		registry := prometheus.NewRegistry()
		x := newCounter("x_total", 1e6)
		registry.MustRegister(x)
		g := &fakeGatherer{func() ([]*dto.MetricFamily, error) { return nil, errors.New("not yet") }}
		s := newSampling(t, g, sampler.Options{})
		g.do = registry.Gather
		for range 2 {
			x.Add(5)
			s.second()
		}
		if got, want := s.lines(""), "x_total_increase 5 46000\n"; got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
	t.Run("the first gathering fails in part", func(t *testing.T) {
		registry, more := prometheus.NewRegistry(), prometheus.NewRegistry()
		registry.MustRegister(newCounter("a_total", 1))
		more.MustRegister(newCounter("b_total", 1e6))
		g := &fakeGatherer{func() ([]*dto.MetricFamily, error) {
			f, _ := registry.Gather()
			return f, errors.New("b is broken")
		}}
		s := newSampling(t, g, sampler.Options{})
		s.second()
		g.do = prometheus.Gatherers{registry, more}.Gather
		s.second()
		s.second()
		if got := s.lines("metric=persecond_b_total_increase"); got != "b_total_increase 0 47000\n" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("the limit was reached", func(t *testing.T) {
		s := newSampling(t, nil, sampler.Options{MaxSeries: 1})
		a := newCounter("a_total", 1)
		s.MustRegister(a, newCounter("b_total", 1e6))
		s.second()
		s.Unregister(a)
		for range 700 {
			s.second()
		}
		if got := s.lines("window=10m"); strings.Contains(got, "1000000") ||
			!strings.Contains(got, "b_total_increase 0 ") {
			t.Errorf("got %.200s", got)
		}
	})
}

// The sum of a histogram may decrease without a reset of the histogram. The count decides whether the histogram was
// reset.
func TestSamplerOfNegativeObservations(t *testing.T) {
	s := newSampling(t, nil, sampler.Options{})
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "x"})
	s.MustRegister(h)
	for _, v := range []float64{10, -3, -20} {
		h.Observe(v)
		s.second()
	}
	const want = "h_sum_increase 10 45000\nh_sum_increase -3 46000\nh_sum_increase -20 47000\n"
	if got := s.lines("metric=persecond_h_sum_increase"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// When the Sampler ends, it also samples the open second.
func TestSamplerSamplesTheLastSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		registry := prometheus.NewRegistry()
		x := prometheus.NewCounter(prometheus.CounterOpts{Name: "x_total", Help: "x"})
		registry.MustRegister(x)
		s, err := sampler.New(c, sampler.Options{Gatherer: registry})
		if err != nil {
			t.Fatal(err)
		}
		read := newScraper(t, c, prom.SecondsOptions{Sampler: s})
		stop := s.Start()
		for range 35 {
			time.Sleep(100 * ms)
			x.Inc()
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for line := range strings.Lines(read.get("").Body.String()) {
			if rest, ok := strings.CutPrefix(line, "persecond_x_total_increase "); ok {
				var v, at float64
				if _, err := fmt.Sscan(rest, &v, &at); err != nil {
					t.Fatal(err)
				}
				sum += v
			}
		}
		if sum != 35 {
			t.Errorf("sampled %v, want 35", sum)
		}
	})
}

// ServeSeconds returns an error for invalid arguments. A mux with other patterns, even broad ones, is valid.
func TestServeSecondsOnAMux(t *testing.T) {
	registry := prometheus.NewRegistry()
	with := func(pattern string) *http.ServeMux {
		mux := http.NewServeMux()
		mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
		return mux
	}
	for name, tc := range map[string]struct {
		g       prometheus.Gatherer
		mux     *http.ServeMux
		options prom.ServeOptions
		want    string // part of the error; empty if there is no error
	}{
		"GET /":                {g: registry, mux: with("GET /")},
		"/":                    {g: registry, mux: with("/")},
		"GET /metrics/{what}":  {g: registry, mux: with("GET /metrics/{what}")},
		"GET /metrics":         {g: registry, mux: with("GET /metrics")},
		"GET /metrics/seconds": {registry, with("GET /metrics/seconds"), prom.ServeOptions{}, "GET /metrics/seconds"},
		"no mux":               {registry, nil, prom.ServeOptions{}, "no mux"},
		"no Gatherer":          {nil, with("/"), prom.ServeOptions{}, "no Gatherer"},
		"MaxSeries":            {registry, with("/"), prom.ServeOptions{MaxSeries: -1}, "MaxSeries"},
		"History":              {registry, with("/"), prom.ServeOptions{History: -1}, "History"},
	} {
		page, err := prom.ServeSeconds(t.Context(), tc.g, tc.mux, tc.options)
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if (page != nil) != (err == nil) {
			t.Errorf("%s: %v with %v", name, page, err)
		}
	}
}

// The page of [prom.ServeSeconds] shows the self-metrics, without timestamps, in addition to the seconds. A server can
// parse it in either format, even without a new second.
func TestServeSecondsSelfMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		orders := prometheus.NewCounter(prometheus.CounterOpts{Name: "orders_total", Help: "Orders."})
		registry.MustRegister(orders)
		mux := http.NewServeMux()
		ctx, cancel := context.WithCancel(t.Context())
		defer time.Sleep(3 * time.Second) // until the last second is sampled
		defer cancel()
		if _, err := prom.ServeSeconds(ctx, registry, mux, prom.ServeOptions{}); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			time.Sleep(time.Second)
			orders.Add(7)
		}
		time.Sleep(500 * ms) // until the last second is sampled
		synctest.Wait()
		get := func(accept string) string {
			r := httptest.NewRequest("GET", "/metrics/seconds?cursor="+accept[:4], nil)
			r.Header.Set("Accept", accept)
			rec := httptest.NewRecorder()
			if mux.ServeHTTP(rec, r); rec.Code != http.StatusOK {
				t.Fatal(rec.Code, rec.Body)
			}
			return rec.Body.String()
		}
		delivered := 0
		for _, seconds := range []bool{true, false} { // the second response has no new seconds
			body := get("text/plain")
			parser := expfmt.NewTextParser(model.UTF8Validation)
			families, err := parser.TextToMetricFamilies(strings.NewReader(body))
			if err != nil {
				t.Fatalf("%v:\n%s", err, body)
			}
			if _, ok := families["persecond_orders_total_increase"]; ok != seconds {
				t.Errorf("new seconds: %t, want %t\n%s", ok, seconds, body)
			}
			for _, name := range []string{
				"windowstat_sampler_series", "windowstat_cursor_lag_seconds",
				"windowstat_build_info",
			} {
				if f := families[name]; f == nil || f.Metric[0].TimestampMs != nil {
					t.Errorf("%s is %v, want it without a timestamp", name, f)
				}
			}
			want := map[string]float64{
				"windowstat_sampler_series":               1,
				"windowstat_sampler_left_out_series":      0,
				"windowstat_sampler_errors_total":         0,
				"windowstat_sampler_missed_seconds_total": 0,
			}
			if seconds {
				delivered = len(families["persecond_orders_total_increase"].Metric)
			} else {
				want["windowstat_cursor_delivered_seconds_total"] = float64(delivered)
				want["windowstat_cursor_lag_seconds"] = 0
			}
			for name, v := range want {
				m := families[name].GetMetric()
				m = slices.DeleteFunc(
					m,
					func(m *dto.Metric) bool { return len(m.Label) == 2 && m.Label[1].GetValue() != "text" },
				)
				if len(m) != 1 || m[0].GetGauge().GetValue()+m[0].GetCounter().GetValue() != v {
					t.Errorf("%s: %v, want %v", name, m, v)
				}
			}
			body = get("application/openmetrics-text;version=1.0.0")
			checkOpenMetrics(t, body)
			if strings.Contains(body, "\npersecond_orders_total_increase ") != seconds ||
				!strings.Contains(body, "\nwindowstat_sampler_series ") {
				t.Errorf("OpenMetrics:\n%s", body)
			}
		}
	})
}

// checkOpenMetrics reports errors that parsers of OpenMetrics reject: lines that are neither samples nor metadata,
// samples outside their family or with the wrong suffix for its type, duplicate families, timestamps in milliseconds,
// and a missing or misplaced # EOF.
func checkOpenMetrics(t *testing.T, body string) {
	t.Helper()
	rest, ok := strings.CutSuffix(body, "# EOF\n")
	if !ok {
		t.Errorf("the page does not end with # EOF:\n%s", body)
	}
	what := regexp.MustCompile(`^# (HELP|TYPE|UNIT) ([a-z0-9_]+) (.+)$`)
	sample := regexp.MustCompile(`^([a-z0-9_]+)(?:\{[^{}]*\})? (?:[-+]?[0-9.e+-]+|NaN|[-+]Inf)(?: ([0-9.]+))?$`)
	told, family, kind := map[string]bool{}, "", ""
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if m := what.FindStringSubmatch(line); m != nil {
			if m[1] == "UNIT" && (m[2] != family || !strings.HasSuffix(family, "_"+m[3])) {
				t.Errorf("the unit is not the end of %s: %s", family, line)
			}
			if family = m[2]; told[m[1]+family] {
				t.Errorf("duplicate metadata: %s", line)
			}
			if m[1] == "TYPE" {
				kind = m[3]
			}
			told[m[1]+family] = true
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("neither a sample nor metadata: %s", line)
			continue
		}
		want := family
		if kind == "counter" {
			want += "_total"
		}
		if m[1] != want {
			t.Errorf("sample of %s in family %s", m[1], family)
		}
		if at, err := strconv.ParseFloat(cmp.Or(m[2], "0"), 64); err != nil || at > 1e11 {
			t.Errorf("timestamp is not in seconds: %s", line)
		}
	}
}
