package bench

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/exporter/prom"
)

// Page is a way to export a [Service] to Prometheus.
type Page struct {
	// Name identifies the page in results.
	Name string
	// Lacks lists the values and features of windowstat that the page does not have.
	Lacks string
	// New creates the page. The page may keep the service or only its figures.
	New func(*Service) (http.Handler, error)
}

// Pages returns the ways to export the current values of all resources, the runtime and the process.
func Pages() []Page {
	return []Page{
		{"windowstat", "", func(s *Service) (http.Handler, error) { return prom.Handler(s.Collector, prom.Options{}) }},
		{"client_golang", "to work out what it shows", newVectorPage},
	}
}

// RegistryPages returns the ways to export the same values in a separate registry, read from the same windowstat
// collector.
func RegistryPages() []Page {
	return []Page{
		{"windowstat", "", func(s *Service) (http.Handler, error) {
			p, err := prom.New(s.Collector, prom.Options{})
			if err != nil {
				return nil, err
			}
			return inRegistry(p)
		}},
		{"const-metrics", "native histograms", func(s *Service) (http.Handler, error) {
			return inRegistry(newConstMetrics(s.Collector))
		}},
	}
}

// SecondsPages returns the ways to export the last [SecondsShown] seconds, each with its timestamp.
func SecondsPages() []Page {
	return []Page{
		{
			"windowstat", "",
			func(s *Service) (http.Handler, error) { return prom.NewSeconds(s.Collector, prom.SecondsOptions{}) },
		},
		{"const-metrics", "cursors, a choice of what to show", func(s *Service) (http.Handler, error) {
			return inRegistry(newConstSeconds(s.Collector))
		}},
	}
}

func inRegistry(c prometheus.Collector) (http.Handler, error) {
	r := prometheus.NewRegistry()
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true}), r.Register(c)
}

// runtimeMetrics returns the additional metrics of both pages: the Go runtime and the process.
func runtimeMetrics() (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	return r, errors.Join(
		r.Register(collectors.NewGoCollector()),
		r.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	)
}

// newVectorPage has a counter, gauge or histogram of client_golang for each series that windowstat exports, with the
// same value. The values are set before, as a service sets them while it runs. The page keeps no other data.
func newVectorPage(s *Service) (http.Handler, error) {
	families, err := families(s)
	if err != nil {
		return nil, err
	}
	r, err := runtimeMetrics()
	if err != nil {
		return nil, err
	}
	for _, f := range families {
		if err := r.Register(vector(f, s)); err != nil {
			return nil, err
		}
	}
	return promhttp.InstrumentMetricHandler(r, promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true})),
		nil
}

// families returns the metric families that windowstat exports for a service.
func families(s *Service) ([]*dto.MetricFamily, error) {
	p, err := prom.New(s.Collector, prom.Options{})
	if err != nil {
		return nil, err
	}
	r := prometheus.NewRegistry()
	if err := r.Register(p); err != nil {
		return nil, err
	}
	return r.Gather()
}

// vector converts a family to client_golang's own metrics.
func vector(f *dto.MetricFamily, s *Service) prometheus.Collector {
	var labels []string
	for _, l := range f.Metric[0].Label {
		labels = append(labels, l.GetName())
	}
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.GetName(), Help: f.GetHelp()}, labels)
		for _, m := range f.Metric {
			v.WithLabelValues(values(m)...).Add(m.Counter.GetValue())
		}
		return v
	case dto.MetricType_GAUGE:
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.GetName(), Help: f.GetHelp()}, labels)
		for _, m := range f.Metric {
			v.WithLabelValues(values(m)...).Set(m.Gauge.GetValue())
		}
		return v
	}
	var bounds []float64
	for _, b := range f.Metric[0].Histogram.Bucket {
		bounds = append(bounds, b.GetUpperBound())
	}
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: f.GetName(), Help: f.GetHelp(), Buckets: bounds, NativeHistogramBucketFactor: 1.1,
	}, labels)
	names := Names(len(f.Metric))
	for _, m := range f.Metric {
		h := v.WithLabelValues(values(m)...)
		i, _ := slices.BinarySearch(names, values(m)[0]) // names is sorted
		s.Took(i, func(rt time.Duration) { h.Observe(rt.Seconds()) })
	}
	return v
}

func values(m *dto.Metric) []string {
	var list []string
	for _, l := range m.Label {
		list = append(list, l.GetValue())
	}
	return list
}
