package prom

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// Options configure a [Collector]. The zero value is sensible.
type Options struct {
	// Namespace is the prefix of all names, [exporter.Namespace] if empty.
	Namespace string
	// Sources are other parts of windowstat with metrics about themselves, such as the metric log. Self-metrics
	// without a source are 0. Where several sources have the same one, counters are added and of gauges the highest
	// is shown.
	Sources []exporter.Source
}

// validNamespace is what may stand before an underscore and a name.
var validNamespace = regexp.MustCompile(`^[a-zA-Z_]([a-zA-Z0-9_]*[a-zA-Z0-9])?$`)

// Collector is a prometheus.Collector of all resources and of windowstat itself. It is safe for concurrent use.
type Collector struct {
	stats   *collector.Collector
	sources []exporter.Source
	metrics []metric
}

// metric is a row of the catalogue and its description.
type metric struct {
	exporter.Metric
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// New makes a Collector to register. The error names every option that is wrong.
func New(c *collector.Collector, o Options) (*Collector, error) {
	if o.Namespace == "" {
		o.Namespace = exporter.Namespace
	}
	if !validNamespace.MatchString(o.Namespace) {
		return nil, fmt.Errorf("prom: namespace %q: letters, digits and _ are allowed, no digit in front and no _ at the end", o.Namespace)
	}
	kinds := map[exporter.Type]prometheus.ValueType{exporter.Counter: prometheus.CounterValue, exporter.Gauge: prometheus.GaugeValue}
	p := &Collector{stats: c, sources: o.Sources}
	for _, m := range exporter.Catalogue() {
		p.metrics = append(p.metrics, metric{
			Metric: m,
			desc:   prometheus.NewDesc(o.Namespace+"_"+m.Name, m.Help, m.Labels, nil),
			kind:   kinds[m.Type],
		})
	}
	return p, nil
}

// Describe implements prometheus.Collector.
func (p *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range p.metrics {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (p *Collector) Collect(ch chan<- prometheus.Metric) {
	var histogram node.Histogram
	for _, r := range p.stats.Seal().Resources {
		snap := r.Snapshot(&histogram)
		for _, m := range p.metrics {
			switch {
			case m.Resource != nil:
				ch <- m.value(m.Resource(&snap), r.Name())
			case m.Type == exporter.Histogram:
				ch <- m.histogram(&histogram, r.Began(), r.Name())
			}
		}
	}
	p.self(ch)
}

// self sends the metrics about windowstat.
func (p *Collector) self(ch chan<- prometheus.Metric) {
	values := map[string]float64{}
	for _, s := range p.sources {
		s.Self(func(name string, v float64) {
			if strings.HasSuffix(name, "_total") {
				values[name] += v
			} else {
				values[name] = max(values[name], v)
			}
		})
	}
	health := p.stats.Health()
	for _, m := range p.metrics {
		switch {
		case m.Resource != nil || m.Type == exporter.Histogram:
		case m.Name == exporter.BuildInfo:
			ch <- m.value(1, exporter.Version(), runtime.Version())
		case m.Self != nil:
			ch <- m.value(m.Self(health))
		default:
			ch <- m.value(values[m.Name])
		}
	}
}

func (m metric) value(v float64, labels ...string) prometheus.Metric {
	c, err := prometheus.NewConstMetric(m.desc, m.kind, v, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(m.desc, err)
	}
	return c
}

// zeroThreshold is client_golang's default. The zero bucket holds response times of 0 alone.
const zeroThreshold = prometheus.DefNativeHistogramZeroThreshold

func (m metric) histogram(h *node.Histogram, began time.Time, labels ...string) prometheus.Metric {
	buckets := map[int]int64{}
	for i, n := range h.Native() {
		buckets[i] = n
	}
	bounds := map[float64]uint64{}
	for bound, n := range h.Classic() {
		bounds[bound.Seconds()] = uint64(n)
	}
	count, sum := uint64(h.Count()), h.Sum().Seconds()
	native, err := prometheus.NewConstNativeHistogram(m.desc, count, sum, buckets, nil, uint64(h.Zero()),
		node.NativeSchema, zeroThreshold, began, labels...)
	classic, err2 := prometheus.NewConstHistogram(m.desc, count, sum, bounds, labels...)
	if err := errors.Join(err, err2); err != nil {
		return prometheus.NewInvalidMetric(m.desc, err)
	}
	return both{native, classic}
}

// both is a native histogram with the buckets of a classic one.
type both struct {
	prometheus.Metric
	classic prometheus.Metric
}

// Write implements prometheus.Metric.
func (b both) Write(out *dto.Metric) error {
	var classic dto.Metric
	if err := errors.Join(b.Metric.Write(out), b.classic.Write(&classic)); err != nil {
		return err
	}
	out.Histogram.Bucket = classic.Histogram.Bucket
	return nil
}
