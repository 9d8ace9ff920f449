package prom_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/exporter/sampler"
)

// registerNames registers metrics whose names many schemes of escaping would make equal, and sets each to its own
// value.
func registerNames(r prometheus.Registerer) (want map[string]float64) {
	want = map[string]float64{}
	for i, name := range []string{
		"queue.length", "queue_length", "queue-length", "queue:length", "queue length", `queue"length\`, "größe",
		"queue_length_increase", "persecond_queue.length", "U__queue_2e_length",
	} {
		labels := prometheus.Labels{"pod": "1", "k8s.pod": "2", "k8s_pod": "3", "k8s:pod": "4", `k8s"pod`: "5"}
		if i%2 == 0 {
			gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "x", ConstLabels: labels})
			gauge.Set(float64(i))
			r.MustRegister(gauge)
			want[fmt.Sprintf("persecond_%s %v", name, labels)] = float64(i)
		} else {
			counter := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: "x", ConstLabels: labels})
			counter.Add(float64(i))
			r.MustRegister(counter)
			want[fmt.Sprintf("persecond_%s_increase %v", name, labels)] = float64(i)
		}
	}
	return want
}

// Each name on a page is the name of one metric. Clients that accept names of UTF-8 get them unchanged; other clients
// get legacy names, from which Prometheus' own function restores the names.
func TestSamplerNames(t *testing.T) {
	s := newSampling(t, nil, sampler.Options{})
	s.second()
	want := registerNames(s)
	s.second()
	for _, tc := range []struct {
		accept, query string
		quoted        bool
	}{
		{"text/plain;version=0.0.4", "", false},
		{"text/plain;version=0.0.4;escaping=underscores", "", false},
		{"text/plain;version=1.0.0;escaping=allow-utf-8", "", true},
		{"application/openmetrics-text;version=1.0.0", "", false},
		{"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8", "", true},
		{"text/plain;version=0.0.4", "&histogram=vmrange", true},
		{string(expfmt.NewFormat(expfmt.TypeProtoDelim)), "&histogram=native", false},
		{string(expfmt.NewFormat(expfmt.TypeProtoDelim)) + ";escaping=allow-utf-8", "&histogram=native", true},
	} {
		r := httptest.NewRequest("GET", "/metrics/seconds?window=1s"+tc.query, nil)
		r.Header.Set("Accept", tc.accept)
		rec := httptest.NewRecorder()
		s.page.ServeHTTP(rec, r)
		if rec.Code != 200 {
			t.Fatalf("%s: %d %s", tc.accept, rec.Code, rec.Body)
		}
		page := bytes.NewBufferString(strings.TrimSuffix(rec.Body.String(), "# EOF\n"))
		format := expfmt.Format(rec.Header().Get("Content-Type"))
		scheme := model.LegacyValidation
		if tc.quoted {
			scheme = model.UTF8Validation
		}
		got := map[string]float64{}
		add := func(f *dto.MetricFamily) {
			name := f.GetName()
			if name == "windowstat_persecond_run" {
				return
			}
			if !scheme.IsValidMetricName(name) {
				t.Errorf("%s: the name %q", tc.accept, name)
			}
			if !tc.quoted {
				name = model.UnescapeName(name, model.ValueEncodingEscaping)
			}
			for _, m := range f.Metric {
				labels := prometheus.Labels{}
				for _, l := range m.Label {
					label := l.GetName()
					if !scheme.IsValidLabelName(label) {
						t.Errorf("%s: the label %q", tc.accept, label)
					}
					if !tc.quoted {
						label = model.UnescapeName(label, model.ValueEncodingEscaping)
					}
					labels[label] = l.GetValue()
				}
				got[fmt.Sprintf("%s %v", name, labels)] = m.GetGauge().GetValue()
			}
		}
		if strings.Contains(tc.query, "native") {
			decoder := expfmt.NewDecoder(page, format)
			for {
				var f dto.MetricFamily
				if err := decoder.Decode(&f); err != nil {
					break
				}
				add(&f)
			}
		} else {
			parser := expfmt.NewTextParser(scheme)
			families, err := parser.TextToMetricFamilies(page)
			if err != nil {
				t.Fatalf("%s: %v\n%s", tc.accept, err, rec.Body)
			}
			for _, f := range families {
				add(f)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s%s: got %v, want %v", tc.accept, tc.query, got, want)
		}
	}
}

// The ending of an increase shows a gauge.
func TestSamplerIncreases(t *testing.T) {
	s := newSampling(t, nil, sampler.Options{})
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "requests_total", Help: "x"})
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "rt_seconds", Help: "x"})
	// A gauge may have the name that an increase gets. The series that came first keeps it.
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "requests_total_increase", Help: "x"})
	s.MustRegister(counter, histogram)
	s.second()
	s.MustRegister(gauge)
	gauge.Set(9)
	counter.Add(3)
	histogram.Observe(2)
	s.second()
	lines := strings.Split(strings.TrimSuffix(s.lines("window=1s"), "\n"), "\n")
	slices.Sort(lines)
	want := "[requests_total_increase 3 46000 rt_seconds_count_increase 1 46000 rt_seconds_sum_increase 2 46000]"
	if fmt.Sprint(lines) != want {
		t.Errorf("%v, want %s", lines, want)
	}
	if n := s.own("sampler_left_out_series"); n != 1 {
		t.Errorf("%v series are left out, want the gauge", n)
	}
}
