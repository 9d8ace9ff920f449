package e2e

import (
	"context"
	"errors"
	"log"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// kept is an OpenTelemetry exporter that keeps its latest metrics by name.
type kept map[string]metricdata.Metrics

func (kept) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

func (kept) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

func (k kept) Export(_ context.Context, all *metricdata.ResourceMetrics) error {
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			k[m.Name] = m
		}
	}
	return nil
}

func (kept) ForceFlush(context.Context) error { return nil }
func (kept) Shutdown(context.Context) error   { return nil }

// TestOpenTelemetryBridge runs the program of docs/opentelemetry.md, which exports all totals through OpenTelemetry's
// SDK. They equal /metrics: every value, every bucket, sums and counts, and the start times of the counters. A resource
// without calls is the first of each family.
func TestOpenTelemetryBridge(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Resource("a, which nobody calls")
	for i := range 500 {
		e := c.Resource("checkout").Enter()
		time.Sleep(time.Duration(i%7) * 300 * time.Microsecond)
		if i%5 == 0 {
			e.Exit(errors.New("declined"))
		} else {
			e.Exit(nil)
		}
	}
	c.Resource("checkout").Block("")
	otlp, ctx := kept{}, t.Context()

	// begin bridge
	metrics, err := prom.New(c, prom.Options{})
	if err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	producer := bridge.NewMetricProducer(bridge.WithGatherer(registry))
	reader := sdkmetric.NewPeriodicReader(otlp, sdkmetric.WithProducer(producer))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer func() { _ = provider.Shutdown(ctx) }() // exports once more
	// end bridge

	if err := provider.ForceFlush(ctx); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(otlp) != len(families) || len(otlp) < 20 {
		t.Errorf("%d metrics of %d families", len(otlp), len(families))
	}
	for _, f := range families {
		m := otlp[f.GetName()]
		if m.Description != f.GetHelp() || m.Unit != "" {
			t.Errorf("%s: %q in %q", f.GetName(), m.Description, m.Unit)
		}
		compareFamily(t, f, m.Data)
	}
}

// compareFamily compares a family of a registry with the metric that the bridge exported for it.
func compareFamily(t *testing.T, f *dto.MetricFamily, data metricdata.Aggregation) {
	t.Helper()
	name := f.GetName()
	switch data := data.(type) {
	case metricdata.Gauge[float64]:
		for i, p := range data.DataPoints {
			// Gauges of time and of the clock differ from one gathering to the next.
			if v := f.Metric[i].GetGauge().GetValue(); !sameLabels(p.Attributes, f.Metric[i]) ||
				p.Value != v && !strings.Contains(name, "clock") && !strings.Contains(name, "qps") {
				t.Errorf("%s: %v, want %v", name, p.Value, v)
			}
		}
	case metricdata.Sum[float64]:
		if !data.IsMonotonic || data.Temporality != metricdata.CumulativeTemporality {
			t.Errorf("%s is no counter", name)
		}
		for i, p := range data.DataPoints {
			want := f.Metric[i].GetCounter()
			if p.Value != want.GetValue() || !sameLabels(p.Attributes, f.Metric[i]) || want.CreatedTimestamp == nil ||
				!p.StartTime.Equal(want.GetCreatedTimestamp().AsTime()) {
				t.Errorf("%s: %v since %v, want %v", name, p.Value, p.StartTime, want)
			}
		}
	case metricdata.ExponentialHistogram[float64]:
		for i, p := range data.DataPoints {
			want := f.Metric[i].GetHistogram()
			if p.Count != want.GetSampleCount() || p.Sum != want.GetSampleSum() || p.Scale != want.GetSchema() ||
				p.ZeroCount != want.GetZeroCount() ||
				!sameLabels(p.Attributes, f.Metric[i]) || !p.StartTime.Equal(want.GetCreatedTimestamp().AsTime()) {
				t.Errorf("%s: %+v, want %v", name, p, want)
			}
			buckets := map[int32]uint64{}
			for i, n := range p.PositiveBucket.Counts {
				if n > 0 {
					buckets[p.PositiveBucket.Offset+int32(i)] = n
				}
			}
			if w := nativeBuckets(want); !maps.Equal(buckets, w) {
				t.Errorf("%s has the buckets %v, want %v", name, buckets, w)
			}
		}
	default:
		t.Errorf("%s became %T", name, data)
	}
}

// nativeBuckets returns the buckets of a native histogram by OpenTelemetry's index, the index of the lower bound.
func nativeBuckets(h *dto.Histogram) map[int32]uint64 {
	all, index, count, next := map[int32]uint64{}, int32(-1), int64(0), 0
	for _, span := range h.PositiveSpan {
		index += span.GetOffset()
		for range span.GetLength() {
			count += h.PositiveDelta[next]
			if count > 0 {
				all[index] = uint64(count)
			}
			index, next = index+1, next+1
		}
	}
	return all
}

func sameLabels(got attribute.Set, m *dto.Metric) bool {
	want := make([]attribute.KeyValue, 0, len(m.Label))
	for _, l := range m.Label {
		want = append(want, attribute.String(l.GetName(), l.GetValue()))
	}
	s := attribute.NewSet(want...)
	return got.Equals(&s)
}

// TestDocumentedBridge checks that the page shows the program that ran in the test above.
func TestDocumentedBridge(t *testing.T) {
	source, err := os.ReadFile("otelbridge_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "\t// begin bridge\n")
	text, _, _ := strings.Cut(rest, "\t// end bridge\n")
	text = strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n\t", "\n"), "\n")
	if !slices.ContainsFunc(blocks(t, "go"), func(b block) bool {
		return b.page == "opentelemetry.md" &&
			b.text == text
	}) {
		t.Errorf("docs/opentelemetry.md does not have\n%s", text)
	}
}
