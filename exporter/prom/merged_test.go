package prom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/exporter/vm"
)

// protobuf is the Accept header for protobuf.
var protobuf = string(expfmt.NewFormat(expfmt.TypeProtoDelim))

// pages returns a function that reads all pages of a Collector with metrics about windowstat itself, in every format.
// The pages include metrics that were published before and after the pages were created.
func pages(t *testing.T, c *collector.Collector) func() map[string]map[string]float64 {
	t.Helper()
	own, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := prom.New(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(p)
	w, err := vm.New(c, vm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func() map[string]map[string]float64 {
		all := map[string]map[string]float64{}
		for name, h := range map[string]http.Handler{
			"prom.Handler": own,
			"prom.New":     promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}),
			"vm":           http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { w.WriteMetrics(out) }),
		} {
			for _, accept := range []string{"text/plain", "application/openmetrics-text;version=1.0.0", protobuf} {
				r, rec := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
				r.Header.Set("Accept", accept)
				if h.ServeHTTP(rec, r); rec.Code != http.StatusOK {
					t.Errorf("%s as %s: %d %s", name, accept, rec.Code, rec.Body)
				}
				if accept == protobuf && name != "vm" {
					all[name+" as protobuf"] = ofProtobuf(t, rec.Body)
				} else {
					all[name+" as "+accept] = ofText(t, rec.Body)
				}
			}
		}
		return all
	}
}

// ofText returns the series of a page in text or OpenMetrics. A duplicate series is an error.
func ofText(t *testing.T, page *bytes.Buffer) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(page.String()) {
		if !strings.HasPrefix(line, "windowstat_") {
			continue
		}
		line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " # ") // remove an exemplar
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if _, twice := all[line[:i]]; twice || err != nil {
			t.Errorf("%s: %v, twice: %t", line, err, twice)
		}
		all[line[:i]] = v
	}
	return all
}

// ofProtobuf returns the series of a page in protobuf, without histograms. A duplicate series is an error.
func ofProtobuf(t *testing.T, page io.Reader) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for name, m := range protobufMetrics(t, page) {
		if m.Histogram != nil {
			continue
		}
		if _, twice := all[name]; twice {
			t.Errorf("duplicate series %s", name)
		}
		all[name] = m.Counter.GetValue() + m.Gauge.GetValue()
	}
	return all
}

// protobufMetrics iterates over the metrics of a page in protobuf, with their names in the text format. It yields the
// metrics of windowstat and those with OpenTelemetry's names.
func protobufMetrics(t *testing.T, page io.Reader) func(func(string, *dto.Metric) bool) {
	return func(yield func(string, *dto.Metric) bool) {
		t.Helper()
		for decoder := expfmt.NewDecoder(page, expfmt.NewFormat(expfmt.TypeProtoDelim)); ; {
			f := &dto.MetricFamily{}
			switch err := decoder.Decode(f); {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				t.Fatal(err)
			case !strings.HasPrefix(f.GetName(), "windowstat_") && !conventional.MatchString(f.GetName()+"\n"):
				continue
			}
			for _, m := range f.Metric {
				var labels []string
				for _, l := range m.Label {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
				name := f.GetName()
				if len(labels) > 0 {
					name += "{" + strings.Join(labels, ",") + "}"
				}
				if !yield(name, m) {
					return
				}
			}
		}
	}
}

// One process has two Pushers for one target, one of which never reaches it, two pages of seconds that one server
// reads, and a Sampler. Every page has each series once, and the delay of the failing Pusher is visible.
func TestTwoOfEachPartOnEveryPage(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("tenant") == "dead" {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Resource("a")
	read := pages(t, c)
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tenant := range []string{"dead", "alive"} {
		p, err := push.New(c, push.Options{
			URL: server.URL + "/write?tenant=" + tenant, Labels: map[string]string{"job": "j", "instance": tenant},
			Drain: time.Millisecond, Logger: slog.New(slog.DiscardHandler), Interval: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { _ = p.Run(ctx) })
	}
	registry := prometheus.NewRegistry() // gauges only: a counter has no sample if the previous second was missed
	for i := range 30 {
		registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: fmt.Sprint("gauge_", i)}))
	}
	s, err := sampler.New(c, sampler.Options{Gatherer: registry})
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = s.Run(ctx) })
	first, second := newScraper(t, c, prom.SecondsOptions{Sampler: s}), newScraper(t, c, prom.SecondsOptions{})

	label := fmt.Sprintf(`{format="remote_write",target="%s/write"}`, server.URL)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * ms) {
		first.get("cursor=x")
		page := read()["vm as text/plain"]
		if page["windowstat_push_seconds_total"+label] >= 2 && page["windowstat_push_retries_total"+label] > 0 &&
			page["windowstat_sampler_series"] > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing was pushed or sampled: %v", page)
		}
	}
	second.get("cursor=x")
	second.get("cursor=x")
	sampled := map[string]bool{}
	for line := range strings.Lines(first.get("window=60s").Body.String()) {
		if name, _, ok := strings.Cut(line, " "); ok && strings.HasPrefix(line, "persecond_") {
			sampled[name] = true
		}
	}
	delivered := map[string]float64{} // sum of the counts of both pages
	for _, m := range c.Metrics() {
		if strings.HasPrefix(m.Name, "cursor_") && strings.HasSuffix(m.Name, "_seconds_total") {
			m.Each(
				func(v float64, _ ...string) { delivered["windowstat_"+m.Name+`{client="10.0.0.1",cursor="x"}`] += v },
			)
		}
	}
	for name, page := range read() {
		for series, v := range delivered {
			if got, ok := page[series]; !ok || got != v {
				t.Errorf("%s: %s is %v, want %v", name, series, got, v)
			}
		}
		if got, want := page["windowstat_sampler_series"], float64(len(sampled)); got != want || want < 20 {
			t.Errorf("%s: %v sampled series, want %v", name, got, want)
		}
		if at, ok := page["windowstat_push_last_success_timestamp_seconds"+label]; !ok || at != 0 {
			t.Errorf("%s: last success of the failing Pusher at %v (%t), want 0", name, at, ok)
		}
		if lag := page["windowstat_push_lag_seconds"+label]; lag < 2 {
			t.Errorf("%s: lag of the failing Pusher is %v seconds, want at least 2", name, lag)
		}
	}
	if delivered[`windowstat_cursor_delivered_seconds_total{client="10.0.0.1",cursor="x"}`] < 2 {
		t.Errorf("%v", delivered)
	}
}
