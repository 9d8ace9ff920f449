package prom_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// Published metrics do not change the descriptions of a Collector: it can be unregistered and registered again.
func TestUnregisterAfterPublish(t *testing.T) {
	c, _ := service(t, collector.Options{})
	registry := prometheus.NewRegistry()
	p, err := prom.New(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	registry.MustRegister(p)
	withdraw := c.Publish(collector.Metric{Name: "part", Help: "x", Value: func() float64 { return 1 }})
	for range 2 {
		if !registry.Unregister(p) {
			t.Error("Unregister returns false")
		}
		if err := registry.Register(p); err != nil {
			t.Error(err)
		}
		withdraw()
	}
	c.Publish(
		collector.Metric{
			Name:   "part",
			Help:   "x",
			Labels: []string{"l"},
			Read:   func(yield func(float64, ...string)) { yield(2, "a") },
		},
	)
	list, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.GetName() == "windowstat_part" && f.Metric[0].GetGauge().GetValue() == 2 {
			return
		}
	}
	t.Error("a metric published later is not gathered")
}

// A published metric whose name equals another name is on a page once, in every format. A metric that panics is absent.
func TestPublishedDuplicateNames(t *testing.T) {
	c, _ := service(t, collector.Options{})
	_ = c.Resource("a").Do(func() error { return nil })
	one := func() float64 { return 1 }
	for _, name := range []string{
		"rt_seconds", "rt_seconds_count", "rt_seconds_bucket", "in_flight", "pass",
		"complete_total",
	} {
		c.Publish(collector.Metric{Name: name, Help: "Another one.", Value: one})
	}
	c.Publish(collector.Metric{Name: "bad", Help: "Bad.", Value: func() float64 { panic("oh") }})
	c.Publish(collector.Metric{Name: "good", Help: "Good.", Value: one})
	page, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, accept := range []string{"text/plain", "application/openmetrics-text;version=1.0.0", protobuf} {
		r, rec := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
		r.Header.Set("Accept", accept)
		page.ServeHTTP(rec, r)
		body := rec.Body.String()
		if rec.Code != http.StatusOK || strings.Contains(body, "Another one.") ||
			strings.Contains(body, "windowstat_bad") ||
			!strings.Contains(body, "windowstat_good") {
			t.Errorf("%s: %d\n%.3000s", accept, rec.Code, body)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "# TYPE") && accept != protobuf {
				name := strings.Fields(line)[2]
				if seen[name] && strings.HasPrefix(name, "windowstat_") {
					t.Errorf("%s has TYPE of %s twice", accept, name)
				}
				seen[name] = true
			}
		}
	}
}

// Each format escapes HELP in its own way; protobuf does not escape it.
func TestHelpOfASampledMetric(t *testing.T) {
	const help = "Back\\slash, \"quotes\" and\na line."
	c, now := service(t, collector.Options{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "x", Help: help}))
	s, err := sampler.New(c, sampler.Options{Gatherer: registry})
	if err != nil {
		t.Fatal(err)
	}
	read := newScraper(t, c, prom.SecondsOptions{Sampler: s})
	*now = now.Add(1e9)
	s.Sample()
	get := func(query, accept string) *httptest.ResponseRecorder {
		r, rec := httptest.NewRequest("GET", "/metrics/seconds?window=10s"+query, nil), httptest.NewRecorder()
		r.Header.Set("Accept", accept)
		read.page.ServeHTTP(rec, r)
		return rec
	}
	const before = "# HELP persecond_x At the end of this second: "
	if body := get("", "text/plain").Body.String(); !strings.Contains(
		body,
		before+`Back\\slash, "quotes" and\na line.`+"\n",
	) {
		t.Errorf("text:\n%s", body)
	}
	if body := get("", "application/openmetrics-text;version=1.0.0").Body.String(); !strings.Contains(
		body,
		before+`Back\\slash, \"quotes\" and\na line.`+"\n",
	) {
		t.Errorf("OpenMetrics:\n%s", body)
	}
	f, all := &dto.MetricFamily{}, expfmt.NewDecoder(
		get("&histogram=native", protobuf).Body,
		expfmt.NewFormat(expfmt.TypeProtoDelim),
	)
	for f.GetName() == "" || strings.HasSuffix(f.GetName(), "_run") {
		if err := all.Decode(f); err != nil {
			t.Fatal(err)
		}
	}
	if f.GetName() != "persecond_x" || f.GetHelp() != "At the end of this second: "+help {
		t.Errorf("protobuf: %v", f)
	}
}
