package prom_test

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// Every counter on a page in protobuf has its creation time. A server that inserts a zero at this time sees the first
// calls of a resource as an increase. Pages as text and OpenMetrics have no lines for it, because servers would store
// them as series.
func TestCreatedTimestamps(t *testing.T) {
	c, now := service(t, collector.Options{ExceptionClass: func(error) string { return "x" }})
	made := *now
	*now = now.Add(10 * time.Second)
	withdraw := c.Publish(collector.Metric{Name: "part_total", Value: func() float64 { return 1 }})
	*now = now.Add(10 * time.Second)
	withdrawn := *now
	c.Publish(collector.Metric{Name: "part_total", Value: func() float64 { return 1 }})
	*now = now.Add(10*time.Second + 300*ms)
	began := now.Truncate(time.Second)
	_ = c.Resource("a").Do(func() error { return errors.New("x") })
	c.Enter(t.Context(), "a", collector.Origin("o"))
	*now = now.Add(time.Minute)
	c.Resource("a").Block("late")
	for _, by := range []prom.By{"", prom.ByOrigin} {
		own, err := prom.Handler(c, prom.Options{By: by})
		if err != nil {
			t.Fatal(err)
		}
		get := func(accept string) *bytes.Buffer {
			r, rec := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
			r.Header.Set("Accept", accept)
			own.ServeHTTP(rec, r)
			return rec.Body
		}
		for _, accept := range []string{"text/plain", "application/openmetrics-text;version=1.0.0"} {
			if page := get(accept).String(); strings.Contains(page, "_created") {
				t.Errorf("%s:\n%s", accept, page)
			}
		}
		counters := 0
		for name, m := range protobufMetrics(t, get(protobuf)) {
			created, want := m.Counter.GetCreatedTimestamp(), made
			switch {
			case m.Gauge != nil:
				continue
			case m.Histogram != nil:
				created = m.Histogram.GetCreatedTimestamp()
			}
			if counters++; strings.Contains(name, `resource="a"`) {
				want = began
			} else if strings.HasPrefix(name, "windowstat_part_total") {
				want = made.Add(10 * time.Second)
			} else if strings.HasPrefix(name, "windowstat_scrape_dropped_total") {
				want = *now // creation time of the first page, which now has a second page next to it
			}
			if created == nil || !created.AsTime().Equal(want) {
				t.Errorf("%s was created at %v, want %v", name, created.AsTime(), want)
			}
		}
		if counters < 15 {
			t.Errorf("%d counters", counters)
		}
	}
	withdraw()
	own, err := prom.New(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(own)
	families, err := registry.Gather()
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "windowstat_part_total" })
	if err != nil || i < 0 {
		t.Fatal(err, i)
	}
	if at := families[i].Metric[0].Counter.GetCreatedTimestamp().AsTime(); !at.Equal(withdrawn) {
		t.Errorf("the remaining part was created at %v, want %v", at, withdrawn)
	}
}
